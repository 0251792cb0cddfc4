/* Kernels from equations, for CUDA: a warp or a block for each row. Without rows, a thread computes
 * neighbouring elements.
 *
 *     for each row: a warp loads x, sums it (ht_warp_sum), stores y[r, c] = x[r, c] - mean
 *
 * Loops along a row give each thread the same elements every time. For a short row, a thread keeps
 * in registers (NAME_h) elements that several loops need. For a long row, the thread reloads them.
 * A thread reads only result elements that it wrote itself. All threads of a row compute the row's
 * values; one thread stores these values at the end, when no thread reads operands any more. */
#include "emit/cuda/vector_lanes.h"
#include "emit/kernel/rows.h"
#include "emit/words.h"

enum { MOST_HELD = 64 }; // elements that a thread keeps in registers

/* A function while it is written, with the warp or block that computes a row. */
typedef struct Team {
    Device device;
    const Rows *rows;
    const Nest *along; // the loops along a row; in a kernel without rows all loops
    Lanes lanes;
    bool warp;     // a row is computed by a warp, otherwise by a block
    uint64_t held; // bit t: elements of tensor t are kept in registers between loops
    int turns;     // iterations of a thread along a row; 0: nothing is kept in registers
} Team;

/* Returns whether a tensor's index changes along a row; true in a kernel without rows. */
static bool goes_along(const Team *team, int tensor) {
    bool along = !team->rows->plan.rows;
    for (int l = 0; l < team->along->count; l++)
        along = along || team->along->loop[l].stride[tensor];
    return along;
}

/* Appends an operand or value, from a variable or from memory. Implements AccessWriter. */
static void text_access(Text *out, const LocalOp *local, int operand, void *context) {
    const RowsPlace *place = context;
    const Team *team = place->around.more;
    int tensor = operand >= 0 ? local->result_count + operand : -1 - operand;
    if (operand < 0 && !rows_stored(place->rows, tensor, place->loop))
        text_print(out, "%s_v", rows_name(place->rows, tensor));
    else if (team->held >> tensor & 1) text_print(out, "%s_h[j][e]", local->tensors[tensor].name);
    else if (!goes_along(team, tensor)) text_print(out, "%s_v", local->tensors[tensor].name);
    else text_lane(out, local, tensor, &team->lanes, &place->around);
}

static RowsPlace place_at(const Team *team, int loop) {
    return rows_place(team->rows, loop, text_access, team);
}

static const char *equation_name(const Team *team, int equation) {
    return rows_name(team->rows, rows_value(team->rows, equation));
}

/* ---- elements ---- */

/* Returns the tensors (bit t) that an expression loads inside a loop: operands with elements along
 * the row, and results that an earlier loop stored. */
static uint64_t expr_loads(const Team *team, const Expr *expr, int loop) {
    const LocalOp *local = team->rows->local;
    uint64_t set = 0;
    if (expr->kind == EXPR_ACCESS &&
        goes_along(team, local->result_count + operand_of(local, expr->index)))
        set |= UINT64_C(1) << (local->result_count + operand_of(local, expr->index));
    if (expr->kind == EXPR_RESULT && rows_stored(team->rows, expr->index, loop))
        set |= UINT64_C(1) << expr->index;
    for (int a = 0; a < expr->arg_count; a++) set |= expr_loads(team, expr->arg[a], loop);
    return set;
}

static uint64_t loop_loads(const Team *team, int loop) {
    uint64_t set = 0;
    for (int e = 0; e < team->rows->equation_count; e++)
        if (rows_computes(team->rows, e, loop) || rows_adds(team->rows, e, loop))
            set |= expr_loads(team, team->rows->expr[e], loop);
    return set;
}

/* Returns the C text of the array of a thread's elements of a result: NAME_w, or NAME_h[j]. */
static const char *lanes_name(const Team *team, int result) {
    return arena_format(team->device.out->arena, team->held >> result & 1 ? "%s_h[j]" : "%s_w",
                        rows_name(team->rows, result));
}

/* Appends the statements for one lane, and the lane's stores into the arrays of results. */
static void emit_lane(const RowsPlace *place, int depth) {
    const Team *team = place->around.more;
    Text *out = team->device.out;
    emit_row_element(out, place, depth);
    for (int e = 0; e < team->rows->equation_count; e++) {
        if (!rows_stores(team->rows, e, place->loop)) continue;
        if (team->lanes.width == 1) {
            emit_row_store(out, place, e, depth);
            continue;
        }
        indent(out, depth);
        text_print(out, "%s[e] = %s_v;\n", lanes_name(team, rows_value(team->rows, e)),
                   equation_name(team, e));
    }
}

/* Appends the loads of tensors that are kept in registers from this loop on. */
static void emit_held_loads(const RowsPlace *place, int depth) {
    const Team *team = place->around.more;
    uint64_t known = 0;
    for (int loop = 0; loop < place->loop; loop++) known |= loop_loads(team, loop);
    uint64_t new = loop_loads(team, place->loop) & team->held & ~known;
    for (int t = team->rows->local->result_count; new >> t; t++)
        if (new >> t & 1) {
            indent(team->device.out, depth);
            text_print(team->device.out, "ht_load(%s_h[j], ", team->rows->local->tensors[t].name);
            text_place(team->device.out, team->rows->local, t, &place->around);
            text_string(team->device.out, ");\n");
        }
}

/* Appends one step of a thread, which is several neighbouring elements: loads, lanes, stores. */
static void emit_step(const Team *team, int loop, int depth) {
    Text *out = team->device.out;
    const RowsPlace place = place_at(team, loop);
    if (team->lanes.width == 1) {
        emit_lane(&place, depth);
        return;
    }
    emit_held_loads(&place, depth);
    emit_loads(&team->device, loop_loads(team, loop) & ~team->held, &team->lanes, &place.around,
               depth);
    for (int e = 0; e < team->rows->equation_count; e++)
        if (rows_stores(team->rows, e, loop) && !(team->held >> rows_value(team->rows, e) & 1)) {
            indent(out, depth);
            text_print(out, "%s %s_w[%d];\n", rows_type(team->rows, rows_value(team->rows, e)),
                       equation_name(team, e), team->lanes.width);
        }
    indent(out, depth);
    text_print(out, "for (int e = 0; e < %d; e++) {\n", team->lanes.width);
    emit_lane(&place, depth + 1);
    close_bracket(out, depth);
    for (int e = 0; e < team->rows->equation_count; e++)
        if (rows_stores(team->rows, e, loop)) {
            indent(out, depth);
            text_string(out, "ht_store(");
            text_place(out, team->rows->local, rows_value(team->rows, e), &place.around);
            text_print(out, ", %s);\n", lanes_name(team, rows_value(team->rows, e)));
        }
}

/* ---- rows ---- */

/* Appends the index of this warp's or block's row, and the row's values that are loaded once. */
static void emit_row_begin(const Team *team) {
    const LocalOp *local = team->rows->local;
    Text *out = team->device.out;
    const Around around = {.outputs = &team->rows->outer};
    (team->warp ? emit_own_warp : emit_own_block)(&team->device, &team->rows->outer);
    for (int k = 0; k < local->operand_count; k++) {
        if (!local->operands[k].value || goes_along(team, local->result_count + k)) continue;
        text_print(out, "    const %s %s_v = ", value_type(local->operands[k].value->type.dtype),
                   local->operands[k].name);
        text_element(out, local, k, (void *)&around);
        text_string(out, ";\n");
    }
}

/* Appends the row values, such as sums, that are complete right before a loop. */
static void emit_row_values(const Team *team, int loop) {
    const RowsPlace place = place_at(team, loop);
    for (int e = 0; e < team->rows->equation_count; e++) {
        bool sum = team->rows->plan.step[e].form == EQUATION_SUM;
        const char *total = team->warp ? "ht_warp_sum(%s_s)" : "ht_row_sum(%s_s)";
        if (rows_follows(team->rows, e, loop))
            emit_row_value(
                team->device.out, &place, e,
                sum ? arena_format(team->device.out->arena, total, equation_name(team, e)) : NULL,
                1);
    }
}

/* Appends the head of the loop along a row with the statements `step`. Omits unused indices. */
static void open_row_loop(const Team *team, const char *step) {
    Text *out = team->device.out;
    int threads = team->warp ? CUDA_WARP : CUDA_THREADS;
    const char *index = team->device.index, *k = counter(team->along, &team->lanes, "k");
    long long steps = (long long)steps_of(team->along, &team->lanes);
    bool bound = steps % threads, used = false;
    for (int l = 0; l < team->along->count; l++)
        used = used || has_word(step, team->along->loop[l].name);
    if (!team->turns) {
        text_print(out, "    for (%s %s = threadIdx.x; %s < %lld; %s += %d) {\n", index, k, k,
                   steps, k, threads);
    } else {
        text_print(out, "#pragma unroll\n    for (int j = 0; j < %d; j++) {\n", team->turns);
        if (bound || used)
            text_print(out, "        const %s k = j * %d + threadIdx.x;\n", index, threads);
        if (bound) text_print(out, "        if (k >= %lld)\n            continue;\n", steps);
    }
    if (used) emit_indices(&team->device, team->along, &team->lanes, "k", 2);
}

static void emit_row_loop(const Team *team, int loop) {
    Text *out = team->device.out, step = {.arena = out->arena};
    Team inside = *team;
    inside.device.out = &step;
    emit_step(&inside, loop, 2);
    for (int e = 0; e < team->rows->equation_count; e++)
        if (rows_adds(team->rows, e, loop))
            text_print(out, "    double %s_s = 0;\n", equation_name(team, e));
    open_row_loop(team, text_bytes(&step));
    text_string(out, text_bytes(&step));
    text_string(out, "    }\n");
}

/* Chooses the tensors that stay in registers: operands that several loops load, and loaded results,
 * if registers suffice. Appends their arrays. */
static void choose_held(Team *team) {
    uint64_t once = 0, again = 0;
    for (int loop = 0; loop < team->rows->plan.loop_count; loop++) {
        uint64_t loads = loop_loads(team, loop);
        again |= loads & once;
        once |= loads;
    }
    int results = team->rows->local->result_count, count = 0,
        threads = team->warp ? CUDA_WARP : CUDA_THREADS;
    uint64_t held = again | (once & ((UINT64_C(1) << results) - 1));
    for (int t = 0; held >> t; t++)
        if (held >> t & 1 && nest_inner(team->along)->stride[t] == 1) count++;
        else held &= ~(UINT64_C(1) << t);
    int64_t turns = (steps_of(team->along, &team->lanes) + threads - 1) / threads;
    if (!count || team->lanes.width == 1 || turns * team->lanes.width * count > MOST_HELD) return;
    team->held = held;
    team->turns = (int)turns;
    for (int t = 0; held >> t; t++)
        if (held >> t & 1)
            text_print(team->device.out, "    %s %s_h[%d][%d];\n",
                       value_type(team->rows->local->tensors[t].value->type.dtype),
                       team->rows->local->tensors[t].name, team->turns, team->lanes.width);
}

/* Appends the stores of values of the row that are results. */
static void emit_row_end(const Team *team) {
    const RowsPlace place = place_at(team, team->rows->plan.loop_count);
    int stores = 0, sums = 0;
    for (int e = 0; e < team->rows->equation_count; e++) {
        stores +=
            team->rows->plan.step[e].form != EQUATION_ELEMENT && rows_is_result(team->rows, e);
        sums += team->rows->plan.step[e].form == EQUATION_SUM;
    }
    if (!stores) return;
    text_string(team->device.out, sums         ? ""
                                  : team->warp ? "    __syncwarp();\n"
                                               : "    __syncthreads();\n");
    text_print(team->device.out, "    if (threadIdx.x == 0)%s\n", stores > 1 ? " {" : "");
    for (int e = 0; e < team->rows->equation_count; e++)
        if (team->rows->plan.step[e].form != EQUATION_ELEMENT && rows_is_result(team->rows, e))
            emit_row_store(team->device.out, &place, e, 2);
    text_string(team->device.out, stores > 1 ? "    }\n" : "");
}

/* Appends a kernel with rows. Returns its launch: "grid, block". */
static const char *emit_rows(Team *team) {
    Arena *arena = team->device.out->arena;
    int64_t count = nest_volume(&team->rows->outer, 0, team->rows->outer.count);
    team->warp = count > 1 && nest_volume(team->along, 0, team->along->count) <= CUDA_WARP_SUM;
    emit_row_begin(team);
    choose_held(team);
    for (int loop = 0; loop < team->rows->plan.loop_count; loop++) {
        emit_row_values(team, loop);
        emit_row_loop(team, loop);
    }
    emit_row_values(team, team->rows->plan.loop_count);
    emit_row_end(team);
    if (team->warp) return launch_warps(arena, &team->rows->outer);
    return arena_format(arena, "%lld, %d", (long long)count, CUDA_THREADS);
}

/* Returns whether elements of a result in the set are not contiguous: each is stored separately. */
static bool stores_apart(const LocalOp *local, const Nest *along, uint64_t tensors) {
    bool apart = false;
    for (int t = 0; nest_inner(along) && t < local->result_count; t++)
        apart |= (tensors >> t & 1) && nest_inner(along)->stride[t] != 1;
    return apart;
}

/* Appends a kernel without rows. Returns its launch: "grid, block". */
static const char *emit_elements(const Team *team) {
    Text *out = team->device.out;
    if (!team->along->count) {
        emit_step(team, 0, 1);
        return "1, 1";
    }
    const char *launch = open_steps(&team->device, team->along, &team->lanes);
    emit_step(team, 0, 2);
    text_string(out, "    }\n");
    return launch;
}

void rows_cuda(Text *before, Text *out, const LocalOp *local, const Kernel *kernel) {
    Text text = {.arena = out->arena};
    Rows rows = rows_of(out->arena, local);
    Team team = {.device = device_of(&text, local),
                 .rows = &rows,
                 .along = rows.plan.rows ? &rows.inner : &rows.outer};
    uint64_t tensors = 0;
    for (int loop = 0; loop < rows.plan.loop_count; loop++) {
        tensors |= loop_loads(&team, loop);
        for (int e = 0; e < local->rule->equations.count; e++)
            tensors |= rows_stores(&rows, e, loop) ? UINT64_C(1) << rows_value(&rows, e) : 0;
    }
    team.lanes = lanes_along(local, tensors, team.along, rows.plan.rows ? &rows.outer : NULL);
    if (stores_apart(local, team.along, tensors)) team.lanes.width = 1;
    const char *launch = rows.plan.rows ? emit_rows(&team) : emit_elements(&team);
    emit_launch(before, out, local, kernel, (DeviceText){text_bytes(&text), launch});
}

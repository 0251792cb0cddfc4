#include "core/program.h"

#include "comm/mpi.h"
#include "core/fail.h"
#include "core/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static size_t dtype_size(ht_dtype dtype)
{
    static const size_t SIZES[] = {[HT_F32] = 4, [HT_BF16] = 2, [HT_F64] = 8, [HT_I32] = 4, [HT_I64] = 8};
    return SIZES[dtype];
}

/* ---- making ---- */

static void **state_slots(const Program *program, int param)
{
    return program->slots + program->image->param_count + (ptrdiff_t)param * program->image->state_count;
}

static void **input_slots(const Program *program)
{
    return program->slots + (ptrdiff_t)program->image->param_count * (1 + program->image->state_count);
}

static void open_params(Program *program, Params *params, uint64_t seed)
{
    const ht_image *image = program->image;
    program->params = memory_array(image->param_count, sizeof *program->params);
    for (int p = 0; p < image->param_count; p++) {
        ProgramParam *mine = &program->params[p];
        mine->copy = params_open(params, &image->params[p], image->device_count, seed, &mine->param);
        program->slots[p] = mine->copy->data;
        for (int s = 0; s < image->params[p].state_count; s++) {
            int64_t bytes = pieces_count(image->params[p].state[s], ht_mpi_rank()) * (int64_t)sizeof(float);
            state_slots(program, p)[s] = memset(memory_storage(bytes), 0, (size_t)bytes);
        }
    }
}

static void open_inputs(Program *program)
{
    const ht_image *image = program->image;
    if (image->input_count > PROGRAM_MAX_INPUTS)
        ht_fail("the model %s has %d inputs; a program takes at most %d", image->model, image->input_count, PROGRAM_MAX_INPUTS);
    for (int i = 0; i < image->input_count; i++)
        input_slots(program)[i] =
            memory_storage(pieces_count(image->inputs[i].pieces, ht_mpi_rank()) * (int64_t)dtype_size(image->inputs[i].dtype));
}

Program *program_create(const ht_image *image, Params *params, uint64_t seed)
{
    Program *program = memory_array(1, sizeof *program);
    int device = ht_mpi_rank(), role = image->role_of[device];
    program->image = image;
    program->role = role < 0 ? NULL : &image->roles[role];
    program->slots = memory_array((int64_t)image->param_count * (1 + image->state_count) + image->input_count, sizeof(void *));
    open_params(program, params, seed);
    open_inputs(program);
    program->worker =
        (ht_worker){.slot = program->slots, .piece = image->piece[device], .training = image->trains, .seed = seed, .device = device};
    program->worker.arena = memory_storage(program->role ? program->role->arena_bytes : 0);
    return program;
}

void program_destroy(Program *program)
{
    const ht_image *image = program->image;
    for (int p = 0; p < image->param_count; p++)
        for (int s = 0; s < image->params[p].state_count; s++)
            free(state_slots(program, p)[s]);
    for (int i = 0; i < image->input_count; i++)
        free(input_slots(program)[i]);
    free(program->worker.arena);
    free(program->slots);
    free(program->params);
    free(program);
}

/* ---- inputs and outputs ---- */

static Spread whole(const Program *program, const ht_pieces *pieces)
{
    return (Spread){NULL, pieces_elements(pieces), program->image->device_count};
}

static Spread spread_of(const Program *program, const ht_pieces *pieces)
{
    return (Spread){pieces, pieces_elements(pieces), program->image->device_count};
}

void program_feed(Program *program, int input, const void *data)
{
    const ht_image_input *image = &program->image->inputs[input];
    fail_doing(image->at);
    pieces_move(whole(program, image->pieces), data, spread_of(program, image->pieces), input_slots(program)[input],
                dtype_size(image->dtype));
    program->fed[input] = true;
    fail_doing(NULL);
}

void program_fetch(Program *program, int output, void *to)
{
    const ht_image_output *image = &program->image->outputs[output];
    const void *data = program->role ? ht_at(&program->worker, image->buffer[program->role - program->image->roles]) : NULL;
    pieces_move(spread_of(program, image->pieces), data, whole(program, image->pieces), to, dtype_size(image->dtype));
}

int program_input(const Program *program, const char *name)
{
    for (int i = 0; i < program->image->input_count; i++)
        if (!strcmp(program->image->inputs[i].name, name))
            return i;
    return -1;
}

int program_output(const Program *program, const char *name)
{
    for (int i = 0; i < program->image->output_count; i++)
        if (!strcmp(program->image->outputs[i].name, name))
            return i;
    return -1;
}

/* ---- running ---- */

static void run_phase(Program *program, ht_phase *phase)
{
    if (phase)
        phase(&program->worker);
}

static void run_role(Program *program)
{
    run_phase(program, program->role->before);
    for (int64_t turn = 0; turn < program->image->microbatches; turn++) {
        program->worker.microbatch = turn;
        run_phase(program, program->role->forward);
        run_phase(program, program->role->backward);
    }
    run_phase(program, program->role->update);
}

static float loss_of(Program *program)
{
    union {
        float f;
        double d;
        uint16_t half;
    } loss = {.d = 0};
    if (program->image->loss < 0)
        return 0;
    program_fetch(program, program->image->loss, &loss);
    switch (program->image->outputs[program->image->loss].dtype) {
    case HT_F64: return (float)loss.d;
    case HT_BF16: return ht_bf16_load(loss.half);
    default: return loss.f;
    }
}

float program_run(Program *program, const float *hyper)
{
    program->worker.hyper = hyper;
    fail_step(program->worker.step);
    for (int p = 0; p < program->image->param_count; p++)
        param_refresh(program->params[p].param, program->params[p].copy);
    if (program->role)
        run_role(program);
    fail_doing(NULL);
    for (int p = 0; program->image->trains && p < program->image->param_count; p++)
        param_changed(program->params[p].param, program->params[p].copy);
    program->worker.step++;
    program->ran = true;
    return loss_of(program);
}

/* ---- what emitted code calls ---- */

void ht_run_kernel(ht_worker *r, ht_kernel *kernel, ht_call *call, const char *where)
{
    fail_doing(where);
    call->step = r->step;
    call->training = r->training;
    call->seed = r->seed;
    kernel(call);
    fail_doing(NULL);
}

void ht_convert(ht_worker *r, const ht_reshard *plan, const void *from, void *to, void *scratch, const char *where)
{
    fail_doing(where);
    ht_reshard_run(plan, r->device, from, to, scratch);
    fail_doing(NULL);
}

void ht_accumulate(const ht_worker *r, void *to, const void *from, int64_t count, ht_dtype dtype)
{
    if (!r->microbatch) {
        memmove(to, from, (size_t)count * dtype_size(dtype));
        return;
    }
    for (int64_t i = 0; i < count; i++)
        switch (dtype) {
        case HT_F32: ((float *)to)[i] += ((const float *)from)[i]; break;
        case HT_BF16:
            ((uint16_t *)to)[i] = ht_bf16_store(ht_bf16_load(((uint16_t *)to)[i]) + ht_bf16_load(((const uint16_t *)from)[i]));
            break;
        case HT_F64: ((double *)to)[i] += ((const double *)from)[i]; break;
        case HT_I32: ((int32_t *)to)[i] += ((const int32_t *)from)[i]; break;
        case HT_I64: ((int64_t *)to)[i] += ((const int64_t *)from)[i]; break;
        }
}

void ht_fill_identity(void *to, ht_dtype dtype, int64_t count, bool maximum)
{
    for (int64_t i = 0; i < count; i++)
        switch (dtype) {
        case HT_F32: ((float *)to)[i] = maximum ? -INFINITY : 0; break;
        case HT_BF16: ((uint16_t *)to)[i] = maximum ? ht_bf16_store(-INFINITY) : 0; break;
        case HT_F64: ((double *)to)[i] = maximum ? -INFINITY : 0; break;
        case HT_I32: ((int32_t *)to)[i] = maximum ? INT32_MIN : 0; break;
        case HT_I64: ((int64_t *)to)[i] = maximum ? INT64_MIN : 0; break;
        }
}

/* Writes the migrations between strategies (<hetu/image.h>): the batches of tensors that one plan
 * moves together (`windows` in C), and the tensors' slots under the old and the new strategy.
 *
 *     static const ht_migration_window windows_a_to_b[] = {{&plan_0, slots, slots}, ...};
 *     static const ht_migration gpt_migrations_rows[] = {{&a_image, &b_image, 3, windows_a_to_b}};
 */
#include "emit/program/tables.h"

#include "emit/words.h"
#include "migration/migration.h"

int migrations_count(const Emitter *emitter) {
    return emitter->unit->migrations ? emitter->unit->migrations->at.count : 0;
}

const char *migrations_name(const Emitter *emitter) {
    return arena_format(emitter->arena, "%s_migrations", emitter->prefix);
}

static const char *migration_plan_name(const Emitter *emitter, const MigrationPlan *plan) {
    return arena_format(emitter->arena, "plan_%s_migration_%d", emitter->prefix, plan->number);
}

static void emit_migration_plan(Text *out, Emitter *emitter, const MigrationPlan *migration) {
    const ReplicaGroups *replica_groups = &migration->replica_groups;
    const char *label = arena_format(emitter->arena, "%s: a switch of strategies: %s",
                                     file_name(emitter->unit->file), plan_name(migration->plan));
    PlanNames names = plan_names(emitter, out, replica_groups, -1, NULL);
    emit_plan(out, emitter, migration->plan,
              (PlanLabel){migration_plan_name(emitter, migration), label}, &names);
}

/* Returns `0, 3, 5`: the slots of a batch's tensors, which are their numbers in the image of the
 * old strategy (`from`) or of the new one (slots_of). */
static const char *slots_text(Arena *arena, const MigrationBatch *window, bool from) {
    Text text = {.arena = arena};
    for (int t = 0; t < window->tensors.count; t++)
        text_print(&text, "%s%d", t ? ", " : "",
                   from ? window->tensors.at[t].from : window->tensors.at[t].to);
    return text_bytes(&text);
}

static const char *module_name_of(const Emitter *emitter, const char *const *names,
                                  const Module *module) {
    int m = 0;
    while (emitter->unit->modules.at[m] != module) m++;
    return names[m];
}

/* Appends the batches of a migration to `out`, and its row of the table of migrations to `rows`. */
static void text_migration(Text *out, Text *rows, Emitter *emitter, const char *const *names,
                           const Migration *migration) {
    Arena *arena = emitter->arena;
    const char *from = module_name_of(emitter, names, migration->from),
               *to = module_name_of(emitter, names, migration->to);
    Text windows = {.arena = arena};
    for (int w = 0; w < migration->windows.count; w++) {
        const MigrationBatch *window = &migration->windows.at[w];
        text_print(&windows, "    {&%s, (const int[]){%s}, (const int[]){%s}},\n",
                   migration_plan_name(emitter, window->plan), slots_text(arena, window, true),
                   slots_text(arena, window, false));
    }
    const char *name = arena_format(arena, "windows_%s_to_%s", from, to);
    if (windows.length)
        text_fill(out,
                  "static const ht_migration_window $name[] = { // plan, slots before and "
                  "after\n$rows};\n\n",
                  "name", name, "rows", text_bytes(&windows), NULL);
    text_print(rows, "    {&%s_image, &%s_image, %d, %s},\n", from, to, migration->windows.count,
               windows.length ? name : "NULL");
}

void emit_migrations(Text *out, Emitter *emitter, const char *const *names) {
    if (!migrations_count(emitter)) return;
    const Migrations *all = emitter->unit->migrations;
    Text rows = {.arena = emitter->arena};
    text_string(out, "\n/* ==== from one strategy to another ==== */\n\n");
    for (int i = 0; i < all->plans.count; i++) emit_migration_plan(out, emitter, all->plans.at[i]);
    for (int i = 0; i < all->at.count; i++)
        text_migration(out, &rows, emitter, names, all->at.at[i]);
    text_fill(out,
              "static const ht_migration $name_rows[] = { // from, to, windows\n$rows};\n"
              "extern const ht_migrations $name;\n"
              "const ht_migrations $name = {$count, $name_rows};\n",
              "name_rows", arena_format(emitter->arena, "%s_rows", migrations_name(emitter)),
              "name", migrations_name(emitter), "rows", text_bytes(&rows), "count",
              c_number(emitter->arena, all->at.count), NULL);
}

/* Returns a module of the unit that the running program already has, of the same program as module
 * `index`; -1: none. */
static int like_module(const Unit *unit, int index) {
    for (int m = 0; m < unit->modules.count; m++)
        if (unit->links.at[m].layouts_only &&
            module_same_program(unit->modules.at[m], unit->modules.at[index]))
            return m;
    return -1;
}

void emit_arrival(Text *out, Emitter *emitter, const char *const *names) {
    const Unit *unit = emitter->unit;
    Text known = {.arena = emitter->arena}, fresh = known, like = known;
    int known_count = 0, fresh_count = 0;
    for (int m = 0; m < unit->modules.count; m++) {
        bool new = !unit->links.at[m].layouts_only;
        text_print(new ? &fresh : &known, "    &%s_image,\n", names[m]);
        if (new) text_print(&like, "%s%d", fresh_count ? ", " : "", like_module(unit, m));
        fresh_count += new;
        known_count += !new;
    }
    text_fill(out,
              "static const ht_image *const known_images[] = {\n$known};\n"
              "static const ht_image *const fresh_images[] = {\n$fresh};\n"
              "extern __attribute__((visibility(\"default\"))) const ht_arrival ht_arriving;\n"
              "const ht_arrival ht_arriving = {\n"
              "    .version = HT_IMAGE_VERSION,\n"
              "    .known_count = $known_count,\n"
              "    .fresh_count = $fresh_count,\n"
              "    .known = known_images,\n"
              "    .fresh = fresh_images,\n"
              "    .like = (const int[]){$like},\n"
              "    .migrations = $migrations,\n"
              "};\n",
              "known", text_bytes(&known), "known_count", c_number(emitter->arena, known_count),
              "fresh", text_bytes(&fresh), "fresh_count", c_number(emitter->arena, fresh_count),
              "like", text_bytes(&like), "migrations",
              migrations_count(emitter)
                  ? arena_format(emitter->arena, "&%s", migrations_name(emitter))
                  : "NULL",
              NULL);
}

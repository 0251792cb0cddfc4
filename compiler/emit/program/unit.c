/* Decides which files are emitted, what each contains, and a program's fingerprint. The training
 * loop is the user's own: the main file includes the source. role.c and calls.c write the phases
 * of a step (forward, backward, update), image.c the schedule and other tables. */
#include "emit/emit.h"
#include "emit/program/tables.h"
#include "emit/words.h"
#include "strategy/strategy.h"
#include "support/hash.h"

#include <string.h>

/* Adds the file "BASE.WHAT.SUFFIX". Returns the file, which has no flags yet. */
static EmittedFile *add_file(Emitter *emitter, EmittedFiles *files, const char *what,
                             const char *suffix, const char *text) {
    array_push(
        emitter->arena, files,
        (EmittedFile){.name = arena_format(emitter->arena, "%s.%s.%s", emitter->base, what, suffix),
                      .text = text,
                      .flags = ""});
    return &files->at[files->count - 1];
}

/* Returns "strategy dp4", "strategies dp4, tp4" or "one device". */
static const char *strategy_text(const Emitter *emitter) {
    const Unit *unit = emitter->unit;
    Text text = {.arena = emitter->arena};
    for (int i = 0; i < unit->strategies.count; i++)
        text_print(&text, "%s%s",
                   i                            ? ", "
                   : unit->strategies.count > 1 ? "strategies "
                                                : "strategy ",
                   unit->strategies.at[i]->name);
    return unit->strategies.count ? text_bytes(&text) : "one device";
}

/* Returns the beginning of a file: a comment with the source, the strategy, and `what` follows. */
static Text begin_file(Emitter *emitter, const char *what) {
    Text out = {.arena = emitter->arena};
    text_fill(&out, "/* $source, $strategy: $what. Written by hetucc. */\n", "source",
              c_comment(emitter->arena, file_name(emitter->unit->file)), "strategy",
              strategy_text(emitter), "what", what, NULL);
    return out;
}

/* ---- the main file ---- */

/* Returns the main file's name for a captured global: hetu_far_NAME if only other files have it. */
static const char *read_name(Arena *arena, const CapturedGlobal *read) {
    return read->far ? arena_format(arena, "hetu_far_%s", read->variable) : read->variable;
}

static void declare_far(Text *declarations, const Module *module) {
    for (int i = 0; i < module->source->captured_globals.count; i++) {
        const CapturedGlobal *read = module->source->captured_globals.at[i];
        bool known = !read->far;
        for (int k = 0; k < i && !known; k++)
            known = !strcmp(module->source->captured_globals.at[k]->variable, read->variable);
        if (!known)
            text_print(declarations, "extern const char %s[] __asm__(\"%s\");\n",
                       read_name(declarations->arena, read), read->variable);
    }
}

/* Writes the table of the addresses of a module's captured globals. Returns the table's name. */
static const char *emit_addresses(Text *declarations, const Module *module, const char *name) {
    if (!module->source->captured_globals.count) return "0";
    declare_far(declarations, module);
    text_print(declarations, "static const volatile void *const %s_reads[] = {\n", name);
    for (int i = 0; i < module->source->captured_globals.count; i++) {
        const CapturedGlobal *read = module->source->captured_globals.at[i];
        if (read->offset)
            text_print(declarations, "    (const volatile char *)&%s + %lld,\n",
                       read_name(declarations->arena, read), (long long)read->offset);
        else text_print(declarations, "    &%s,\n", read_name(declarations->arena, read));
    }
    text_string(declarations, "};\n");
    return arena_format(declarations->arena, "%s_reads", name);
}

/* Writes the table of the optimizers' functions, two for each group: the update, and the function
 * that runs after it; 0: the image has the function's name. Returns the table's name. */
static const char *emit_optimizers(Text *declarations, const Module *module, const char *name) {
    if (!module->optimizer->groups.count) return "0";
    text_print(declarations, "static void (*const %s_updates[])(void) = {\n", name);
    for (int g = 0; g < module->optimizer->groups.count; g++) {
        const ParamGroup *group = &module->optimizer->groups.at[g];
        const char *after = group->after && !group->after_name ? group->after : "0";
        text_print(declarations, "    (void (*)(void))%s, (void (*)(void))%s,\n",
                   group->function_name ? "0" : group->function, after);
    }
    text_string(declarations, "};\n");
    return arena_format(declarations->arena, "%s_updates", name);
}

static void emit_registration(Text *declarations, Text *calls, const Module *module,
                              const char *name) {
    text_print(declarations, "extern const struct ht_image %s_image;\n", name);
    const char *updates = emit_optimizers(declarations, module, name);
    text_print(calls, "    ht_register(&%s_image, %s, %s, %s);\n", name, module->name, updates,
               emit_addresses(declarations, module, name));
}

static void emit_migration_registration(const Emitter *emitter, Text *declarations, Text *calls) {
    const char *name = migrations_name(emitter);
    if (!migrations_count(emitter)) return;
    text_print(declarations,
               "struct ht_migrations;\n"
               "extern const struct ht_migrations %s;\n"
               "void ht_register_migrations(const struct ht_migrations *migrations);\n",
               name);
    text_print(calls, "    ht_register_migrations(&%s);\n", name);
}

/* Writes the command line, and the unit's files, with which ht_prepare compiles more strategies. */
static void emit_recipe(const Emitter *emitter, const EmitOptions *options, Text *declarations,
                        Text *calls) {
    if (!options->recipe_count) return;
    const char *call = emitter->unit->asks ? "ht_register_source" : "ht_register_balanced_source";
    text_print(declarations,
               "void %s(const char *fingerprint, const char *const *words);\n"
               "static const char *const %s_words[] = {\n",
               call, emitter->prefix);
    for (int i = 0; i < options->recipe_count; i++)
        text_print(declarations, "    \"%s\",\n", c_string(emitter->arena, options->recipe[i]));
    text_print(declarations,
               "    0};\nvoid ht_register_files(const char *const *files);\nstatic const char "
               "*const %s_files[] = {\n",
               emitter->prefix);
    for (int i = 0; i < emitter->unit->files.count; i++)
        text_print(declarations, "    \"%s\",\n",
                   c_string(emitter->arena, emitter->unit->files.at[i].path));
    text_string(declarations, "    0};\n");
    text_print(calls, "    %s(%s, %s_words);\n    ht_register_files(%s_files);\n", call,
               fingerprint_name(emitter), emitter->prefix, emitter->prefix);
}

/* Returns pragmas that make operators without a body weak, so that the program links without them.
 * No model that calls such an operator runs as C in this program. */
static const char *weak_operators(Emitter *emitter) {
    Text out = {.arena = emitter->arena};
    for (int i = 0; i < emitter->unit->bodiless.count; i++)
        text_print(&out, "#pragma weak %s\n", emitter->unit->bodiless.at[i]);
    if (emitter->unit->bodiless.count) text_string(&out, "\n");
    return text_bytes(&out);
}

const char *fingerprint_name(const Emitter *emitter) {
    return arena_format(emitter->arena, "%s_fingerprint", emitter->prefix);
}

/* Returns the fingerprint: "gpt.c strategy dp4 on 4 devices, cpu, hetucc 0.1.0 -O1, 3f2a5e...". The
 * hash covers all emitted text, the source text and the maker. */
static const char *fingerprint(const Emitter *emitter, const EmittedFiles *files,
                               const EmitOptions *options) {
    const Unit *unit = emitter->unit;
    int devices = unit_device_count(unit);
    bool half = false;
    uint64_t hash = hash_text(hash_text(HASH_START, options->source), options->maker);
    for (int i = 0; i < files->count; i++) hash = hash_text(hash, files->at[i].text);
    for (int m = 0; m < unit->modules.count; m++)
        half = half || unit->modules.at[m]->precision == DTYPE_BF16;
    return arena_format(emitter->arena, "%s %s%s%d device%s, %s%s, %s, %016llx",
                        file_name(unit->file), unit->strategies.count ? strategy_text(emitter) : "",
                        unit->strategies.count ? " on " : "on ", devices, devices == 1 ? "" : "s",
                        half ? "bf16, " : "", options->backend->name, options->maker,
                        (unsigned long long)hash);
}

/* Returns C text that embeds a file for hetucc's linking, in section .hetu, which linkers drop. */
static const char *kept_section(Arena *arena, const EmitOptions *options) {
    if (!options->section) return "";
    const char *word = arena_format(arena, ".incbin \"%s\"", c_string(arena, options->section));
    return arena_format(arena,
                        "__asm__(\".pushsection .hetu,\\\"e\\\",@progbits\\n\"\n"
                        "        \"%s\\n\"\n"
                        "        \".popsection\\n\");\n",
                        c_string(arena, word));
}

/* Returns the assembler text of the section in which heturun finds the strategies of a program
 * before it starts ranks (tools/heturun/compiled_strategies.c): "unit", or "prepares" where the
 * unit asks for further strategies, then "DIGEST NAME" for each strategy. */
static const char *strategies_section(const Emitter *emitter) {
    Arena *arena = emitter->arena;
    Text out = {.arena = arena};
    text_print(&out,
               "#if defined(__GNUC__) && defined(__ELF__)\n"
               "__asm__(\".pushsection .hetu.strategies,\\\"\\\",@progbits\\n\"\n"
               "        \".string \\\"%s\\\"\\n\"\n",
               emitter->unit->asks ? "prepares" : "unit");
    for (int i = 0; i < emitter->unit->strategies.count; i++) {
        const Strategy *strategy = emitter->unit->strategies.at[i];
        const char *word = arena_format(arena, ".string \"%016llx %s\"",
                                        (unsigned long long)strategy_digest(arena, strategy),
                                        c_string(arena, strategy->name));
        text_print(&out, "        \"%s\\n\"\n", c_string(arena, word));
    }
    text_string(&out, "        \".popsection\\n\");\n#endif\n");
    return text_bytes(&out);
}

/* Returns the preprocessed text of the user's source, or an #include of it. */
static const char *source_text(Arena *arena, const EmitOptions *options) {
    return options->text ? options->text
                         : arena_format(arena, "#include %s\n", c_include(arena, options->include));
}

void emit_part(EmittedFiles *files, const Unit *unit, const EmitOptions *options) {
    Arena *arena = unit->arena;
    Emitter emitter = {.arena = arena, .unit = unit, .base = options->base};
    if (!c_include(arena, options->include)) {
        diag_error(unit->diag, (Position){0}, "C cannot include a file of this name: %s",
                   options->include);
        return;
    }
    Text out = {.arena = arena};
    text_fill(&out,
              "/* $source: the source, and what evaluation needs of it. Written by hetucc. */\n"
              "$weak"
              "$text"
              "\n"
              "$waits"
              "$section",
              "source", c_comment(arena, file_name(unit->file)), "weak", weak_operators(&emitter),
              "text", source_text(arena, options), "waits",
              unit->absent.count ? "extern const char hetucc_links_this_program[];\n"
                                   "__attribute__((used)) static const char *const hetucc_waits = "
                                   "hetucc_links_this_program;\n"
                                 : "",
              "section", kept_section(arena, options), NULL);
    add_file(&emitter, files, "part", "c", text_bytes(&out))->source = unit->file;
}

/* Returns the cluster that a unit is compiled for; NULL: it is not known. */
static const Cluster *unit_cluster(const Unit *unit) {
    return unit->modules.count ? unit->modules.at[0]->devices->target.cluster : NULL;
}

static void emit_main(Emitter *emitter, EmittedFiles *files, const EmitOptions *options,
                      const char *const *names, const char *print) {
    Text declarations = {.arena = emitter->arena}, calls = {.arena = emitter->arena};
    for (int m = 0; m < emitter->unit->modules.count; m++)
        emit_registration(&declarations, &calls, emitter->unit->modules.at[m], names[m]);
    emit_migration_registration(emitter, &declarations, &calls);
    emit_recipe(emitter, options, &declarations, &calls);
    if (!emitter->unit->known)
        emit_host_links(emitter->arena, unit_cluster(emitter->unit), emitter->prefix, &declarations,
                        &calls);
    for (int v = 0; v < emitter->unit->shapes.count; v++) {
        const ShapeVariable *shape = &emitter->unit->shapes.at[v];
        text_print(&calls, "    %s = %lld;\n", shape->name, (long long)shape->value);
    }
    Text out = begin_file(emitter, "the source, and the registration of its models");
    text_fill(&out,
              "#if defined(__GNUC__)\n"
              "#pragma GCC diagnostic ignored \"-Wunknown-pragmas\"\n"
              "#endif\n"
              "\n"
              "$weak"
              "$include"
              "\n"
              "extern const char $fingerprint[];\n"
              "const char $fingerprint[] = \"$text\";\n"
              "struct ht_image;\n"
              "$declarations\n"
              "void ht_register(const struct ht_image *image, ht_tensor (*model)(void), void "
              "(*const *updates)(void), const volatile void "
              "*const *now);\n"
              "\n"
              "__attribute__((constructor)) static void $constructor(void)\n"
              "{\n"
              "$calls"
              "}\n"
              "$strategies"
              "$section",
              "weak", weak_operators(emitter), "include", source_text(emitter->arena, options),
              "fingerprint", fingerprint_name(emitter), "text", c_string(emitter->arena, print),
              "declarations", text_bytes(&declarations), "constructor",
              arena_format(emitter->arena, "ht_register_%s", emitter->prefix), "calls",
              text_bytes(&calls), "strategies", strategies_section(emitter), "section",
              kept_section(emitter->arena, options), NULL);
    add_file(emitter, files, "main", "c", text_bytes(&out))->source = emitter->unit->file;
}

/* Writes the main file of strategies that arrive at a running program: only the fingerprint,
 * without a source and without registration. */
static void emit_arriving_main(Emitter *emitter, EmittedFiles *files, const char *print) {
    Text out = begin_file(emitter, "strategies that arrive");
    text_fill(&out,
              "extern const char $fingerprint[];\n"
              "const char $fingerprint[] = \"$text\";\n",
              "fingerprint", fingerprint_name(emitter), "text", c_string(emitter->arena, print),
              NULL);
    add_file(emitter, files, "arriving", "c", text_bytes(&out));
}

/* ---- roles and tables ---- */

/* Writes the roles of a module; role r is added to the r-th role file of the unit. */
static void emit_module(Emitter *emitter, Module *module, const char *name, Text *role_files,
                        Text *image) {
    int count = module->devices->roles->role_count;
    RoleWriter *writers = arena_array(emitter->arena, RoleWriter, count);
    RoleText *texts = arena_array(emitter->arena, RoleText, count);
    for (int role = 0; role < count; role++) {
        writers[role] = role_writer(emitter, module, name, role);
        texts[role] = emit_role(&role_files[role], &writers[role]);
    }
    if (!diag_errors(module->diag)) emit_image(image, writers, texts);
}

static int most_roles(const Unit *unit) {
    int most = 0;
    for (int m = 0; m < unit->modules.count; m++)
        most = !unit->links.at[m].layouts_only &&
                       unit->modules.at[m]->devices->roles->role_count > most
                   ? unit->modules.at[m]->devices->roles->role_count
                   : most;
    return most;
}

static void emit_modules(Emitter *emitter, EmittedFiles *files, const char *const *names) {
    const Unit *unit = emitter->unit;
    int roles = most_roles(unit);
    Text *role_files = arena_array(emitter->arena, Text, roles + 1);
    for (int role = 0; role < roles; role++) {
        role_files[role] = begin_file(emitter, arena_format(emitter->arena, "role %d", role));
        text_string(&role_files[role], emitter->backend->role_opening);
    }
    Text image = begin_file(emitter, "tables");
    text_print(&image, "#include <hetu/rt.h>\n\nextern const char %s[];\n",
               fingerprint_name(emitter));
    for (int m = 0; m < unit->modules.count; m++)
        if (unit->links.at[m].layouts_only)
            emit_known_image(&image, emitter, unit->modules.at[m], names[m]);
        else emit_module(emitter, unit->modules.at[m], names[m], role_files, &image);
    emit_migrations(&image, emitter, names);
    if (unit->known) emit_arrival(&image, emitter, names);
    add_file(emitter, files, "image", "c", text_bytes(&image))->flags =
        emitter->backend->image_flags;
    if (emitter->notes.count)
        add_file(emitter, files, "notes", "c", text_bytes(&emitter->notes.tables))->flags =
            emitter->backend->image_flags;
    for (int role = 0; role < roles; role++) {
        text_string(&role_files[role], emitter->backend->closing);
        add_file(emitter, files, arena_format(emitter->arena, "role%d", role),
                 emitter->backend->suffix, text_bytes(&role_files[role]))
            ->flags = emitter->backend->role_flags;
    }
}

static void emit_kernels(Emitter *emitter, EmittedFiles *files) {
    Text out = begin_file(emitter, "kernels"), kernels = {.arena = emitter->arena};
    write_kernels(&kernels, &emitter->kernels.texts,
                  emitter->backend->shares_bodies && emitter->unit->strategies.count > 1);
    text_fill(&out,
              "$opening"
              "\n"
              "$externs"
              "$kernels"
              "$closing",
              "opening", emitter->backend->kernel_opening, "externs",
              text_bytes(&emitter->kernels.externs), "kernels", text_bytes(&kernels), "closing",
              emitter->backend->closing, NULL);
    add_file(emitter, files, "kernels", emitter->backend->suffix, text_bytes(&out))->flags =
        emitter->backend->kernel_flags;
}

static bool same_identifier(Arena *arena, const Strategy *a, const Strategy *b) {
    return a == b || !strcmp(c_identifier(arena, a->name), c_identifier(arena, b->name));
}

/* Returns a module's name in C: "gpt_gpt_loss_train"; with several strategies
 * "gpt_gpt_loss_train_dp4_"; for a second program of one model "gpt_gpt_loss_train2". */
static const char *module_name(Emitter *emitter, int index) {
    Arena *arena = emitter->arena;
    const Module *module = emitter->unit->modules.at[index];
    int number = 1;
    for (int m = 0; m < index; m++) {
        const Module *before = emitter->unit->modules.at[m];
        number += before->kind == module->kind && !strcmp(before->name, module->name) &&
                  same_identifier(arena, before->strategy, module->strategy);
    }
    const char *name =
        arena_format(arena, "%s_%s_%s", emitter->prefix, c_identifier(arena, module->name),
                     module->kind == MODULE_TRAIN ? "train" : "infer");
    if (emitter->unit->strategies.count > 1)
        name = arena_format(arena, "%s_%s_", name, c_identifier(arena, module->strategy->name));
    return number > 1 ? arena_format(arena, "%s%d", name, number) : name;
}

void emit_unit(EmittedFiles *files, const Unit *unit, const EmitOptions *options) {
    Arena *arena = unit->arena;
    Emitter emitter = {.arena = arena,
                       .unit = unit,
                       .base = options->base,
                       .prefix = c_identifier(arena, options->prefix),
                       .backend = options->backend};
    if (!c_include(arena, options->include)) {
        diag_error(unit->diag, (Position){0}, "C cannot include a file of this name: %s",
                   options->include);
        return;
    }
    Intern **tables[] = {&emitter.kernels.known,    &emitter.pieces.known, &emitter.lists.known,
                         &emitter.pieces.by_layout, &emitter.arrays.known, &emitter.notes.known,
                         &emitter.adding,           &emitter.plans};
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) *tables[i] = intern_create(arena);
    emitter.notes.tables =
        begin_file(&emitter, "notes on calls, for HETU_TRACE, HETU_PROFILE and HETU_NAN");
    text_string(&emitter.notes.tables, "#include <hetu/rt.h>\n\n");
    emitter.kernels.externs.arena = emitter.key.arena = arena;
    const char **names = arena_array(arena, const char *, unit->modules.count + 1);
    for (int m = 0; m < unit->modules.count; m++) names[m] = module_name(&emitter, m);
    EmittedFiles others = {0};
    emit_modules(&emitter, &others, names);
    emit_kernels(&emitter, &others);
    const char *print = fingerprint(&emitter, &others, options);
    if (unit->known) emit_arriving_main(&emitter, files, print);
    else emit_main(&emitter, files, options, names, print);
    for (int i = 0; i < others.count; i++) array_push(arena, files, others.at[i]);
}

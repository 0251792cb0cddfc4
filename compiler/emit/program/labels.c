/* Labels: what emitted C calls slots and values, after the model's own names.
 *
 *     parameter "h0.attn.qkv.w"     gpt_loss_h0_attn_qkv_w, a constant: its slot
 *     its first moment              gpt_loss_h0_attn_qkv_w_m
 *     its gradient                  d_h0_attn_qkv_w; d_attn_qkv_w in a table of layers
 *     a value `fused` of the model  fused
 *     any other value               its operator's name: linear
 */
#include "emit/program/calls.h"

#include "emit/words.h"
#include "hetu/rt.h"
#include "ir/programs/device_programs.h"

#include <string.h>

/* Returns the model's name, with the kind where the unit trains and runs one function. */
static const char *model_label(const Emitter *emitter, const Module *module) {
    Arena *arena = emitter->arena;
    const char *name = c_identifier(arena, module->name);
    for (int m = 0; m < emitter->unit->modules.count; m++) {
        const Module *other = emitter->unit->modules.at[m];
        if (!strcmp(other->name, module->name) && other->kind != module->kind)
            return arena_format(arena, "%s_%s", name,
                                module->kind == MODULE_TRAIN ? "train" : "infer");
    }
    return name;
}

/* Returns, by value id, the name that the last operator that reads the value gives to it, "m". */
static const char **names_in_rules(Arena *arena, const Module *module) {
    const char **names = arena_array(arena, const char *, module->next_id + 1);
    for (int i = 0; i < module->ops.count; i++) {
        const Op *op = module->ops.at[i];
        for (int k = 0; k < op->operand_count && k < op->def->rule->operand_count; k++)
            if (op->operands[k]) names[op->operands[k]->id] = op->def->rule->operands[k].name;
    }
    return names;
}

static const char c_words[] =
    "auto break case char const continue default do double else enum extern float for goto if "
    "inline int long register restrict return short signed sizeof static struct switch typedef "
    "union unsigned void volatile while asm typeof";

const char *label_unique(Arena *arena, Intern *used, const char *name) {
    const char *free_name = name;
    for (int number = 2;; number++) {
        intptr_t *slot = intern_slot(used, free_name, strlen(free_name));
        if (!*slot && !has_word(c_words, free_name) && !backend_word(free_name)) {
            *slot = 1;
            return free_name;
        }
        free_name = arena_format(arena, "%s_%d", name, number);
    }
}

/* Sets labels[slot of value] if the value has a slot. */
static void name_slot(const RoleWriter *writer, Intern *known, const Value *value,
                      const char *name) {
    Arena *arena = writer->emitter->arena;
    int64_t slot = writer->slot_of[value->id];
    if (slot < 0) return;
    writer->labels.slots[slot] =
        label_unique(arena, known, arena_format(arena, "%s_%s", writer->labels.model, name));
}

static void name_slots(RoleWriter *writer) {
    Arena *arena = writer->emitter->arena;
    const Module *module = writer->module;
    Intern *known = intern_create(arena);
    const char **in_rules = names_in_rules(arena, module);
    for (int p = 0; p < module->params.count; p++)
        name_slot(writer, known, module->params.at[p]->value,
                  c_identifier(arena, module->params.at[p]->name));
    for (int p = 0; p < module->params.count; p++) {
        const Parameter *param = module->params.at[p];
        for (int s = 0; s < param->state_count; s++) {
            const char *state = in_rules[param->states[s]->id];
            name_slot(writer, known, param->states[s],
                      arena_format(arena, "%s_%s", c_identifier(arena, param->name),
                                   c_identifier(arena, state ? state : "state")));
        }
    }
    for (int i = 0; i < module->inputs.count; i++)
        name_slot(
            writer, known, module->inputs.at[i],
            c_identifier(arena, module->inputs.at[i]->name ? module->inputs.at[i]->name : "input"));
}

/* Labels a parameter's gradient, and what it is converted or added up from. */
static void name_gradient(RoleWriter *writer, const Parameter *param) {
    const Module *module = writer->module;
    for (const Value *value = param->gradient; value;) {
        writer->labels.gradient_of[value->id] = param->name;
        const Op *op = value->def;
        bool passes = op && (op->convert.plan || op->def == module->builtin->accumulate);
        value = passes ? op->operands[0] : NULL;
    }
}

void labels_create(RoleWriter *writer) {
    Arena *arena = writer->emitter->arena;
    const Module *module = writer->module;
    int slots = module->inputs.count;
    for (int p = 0; p < module->params.count; p++) slots += 1 + module->optimizer->state_count;
    writer->labels.model = model_label(writer->emitter, module);
    writer->labels.slots = arena_array(arena, const char *, slots + 1);
    writer->labels.gradient_of = arena_array(arena, const char *, module->next_id + 1);
    name_slots(writer);
    for (int p = 0; p < module->params.count; p++) name_gradient(writer, module->params.at[p]);
}

/* Returns the slot of a value that is a parameter, state or input, or becomes one; -1: none. */
static int64_t slot_of(const RoleWriter *writer, const Value *value) {
    const Value *owner = role_storage(writer->module, writer->role, value);
    return writer->slot_of[owner->id] >= 0       ? writer->slot_of[owner->id]
           : writer->role->offset[owner->id] < 0 ? writer->updated_of[owner->id]
                                                 : -1;
}

/* Returns the label of an operator's unnamed result: "linear"; "rstd" where the rule says more. */
static const char *result_label(Arena *arena, const Value *value) {
    const Op *op = value->def;
    const char *name = op->def->name, *own = NULL;
    for (int k = 0; k < op->result_count && k < op->def->rule->result_count; k++)
        if (op->results[k] == value) own = op->def->rule->results[k].name;
    bool says_more = own && strlen(own) > 2 && !strchr(own, '_');
    if (says_more && op->result_count > 1) return c_identifier(arena, own);
    return c_identifier(arena, !strncmp(name, "ht_", 3) ? name + 3 : name);
}

const char *value_label(const RoleWriter *writer, const Value *value) {
    Arena *arena = writer->emitter->arena;
    int64_t slot = slot_of(writer, value);
    if (slot >= 0 && writer->labels.slots[slot])
        return writer->labels.slots[slot] + strlen(writer->labels.model) + 1;
    const char *gradient = writer->labels.gradient_of[value->id];
    if (gradient) return arena_format(arena, "d_%s", c_identifier(arena, gradient));
    if (value->name) return c_identifier(arena, value->name);
    if (value->def && value->def->convert.plan) return value_label(writer, value->def->operands[0]);
    return value->def ? result_label(arena, value) : "value";
}

const char *label_place(Arena *arena, Labels *labels, const char *label, int64_t offset) {
    if (!labels->known_place) {
        labels->known_place = intern_create(arena);
        labels->used_name = intern_create(arena);
    }
    const char *key = arena_format(arena, "%s@%lld", label, (long long)offset);
    const char **name = intern_slot(labels->known_place, key, strlen(key));
    if (!*name) {
        *name = label_unique(arena, labels->used_name, label);
        array_push(arena, &labels->places, (ArenaName){*name, offset});
    }
    return arena_format(arena, "%s_at.%s", labels->model, *name);
}

const char *label_buffer(Arena *arena, const Labels *labels, int64_t buffer) {
    return ht_buffer_kind_of(buffer) == HT_BUFFER_SLOT
               ? arena_format(arena, "HT_SLOT(%s)", labels->slots[ht_buffer_place(buffer)])
               : c_buffer(arena, buffer);
}

/* ---- columns ---- */

static bool is_gradient(const char *label) { return !strncmp(label, "d_", 2); }

/* Returns the part of a label behind the layer, with which `other` ends, too: "attn_qkv_w" of
 * "h0_attn_qkv_w" and "h1_attn_qkv_w". NULL: the labels end differently. */
static const char *behind_layer(const char *label, const char *other) {
    size_t same = 0;
    while (label[same] && label[same] == other[same]) same++;
    // the layers' numbers are where the labels differ first
    const char *rest = strchr(label + same, '_'), *others = strchr(other + same, '_');
    return rest && others && !strcmp(rest, others) ? rest + 1 : NULL;
}

/* Returns the name that all labels of turns first to last - 1 share; NULL: they are unlike. */
static const char *shared_name(Arena *arena, const char *const *labels, int first, int last) {
    const char *common = NULL;
    bool alike = true, equal = true, gradients = is_gradient(labels[first]);
    for (int turn = first + 1; turn < last; turn++) {
        const char *rest = behind_layer(labels[first], labels[turn]);
        equal = equal && !strcmp(labels[turn], labels[first]);
        gradients = gradients && is_gradient(labels[turn]);
        alike = alike && rest && (!common || !strcmp(rest, common));
        common = rest;
    }
    if (equal) return labels[first];
    if (!alike) return NULL;
    return arena_format(arena, "%s%s%s", gradients ? "d_" : "",
                        *common >= '0' && *common <= '9' ? "n" : "", common);
}

const char *label_of_column(Arena *arena, const char *const *labels, int count) {
    const char *name = shared_name(arena, labels, 0, count);
    // what the first layer reads, and what the last one makes, may have other names
    if (!name && count > 2) name = shared_name(arena, labels, 1, count);
    if (!name && count > 2) name = shared_name(arena, labels, 0, count - 1);
    bool gradients = true;
    for (int turn = 0; turn < count; turn++) gradients = gradients && is_gradient(labels[turn]);
    return name ? name : gradients ? "gradient" : "tensor";
}

/* ---- text ---- */

void labels_emit_slots(Text *out, const RoleWriter *writer) {
    const Module *module = writer->module;
    int count = module->inputs.count, next = 0;
    for (int p = 0; p < module->params.count; p++) count += 1 + module->optimizer->state_count;
    if (!count) return;
    text_print(
        out,
        "\n/* %s: the slots of parameters, states of the optimizer, and inputs. */\nenum {\n    ",
        module->name);
    for (int slot = 0, listed = 0; slot < count; slot++) {
        const char *name = writer->labels.slots[slot];
        if (!name) continue;
        text_listed(out, !listed++, 4,
                    slot == next ? name : arena_format(out->arena, "%s = %d", name, slot));
        next = slot + 1;
    }
    text_string(out, "\n};\n");
}

void labels_emit_places(Text *out, const Labels *labels) {
    if (!labels->places.count) return;
    text_string(
        out, "\n/* Bytes from the beginning of the arena. */\nstatic const struct {\n    int64_t ");
    for (int i = 0; i < labels->places.count; i++)
        text_listed(out, !i, 8, labels->places.at[i].name);
    text_print(out, ";\n} %s_at = {\n    ", labels->model);
    for (int i = 0; i < labels->places.count; i++)
        text_listed(out, !i, 4,
                    arena_format(out->arena, ".%s = %lld", labels->places.at[i].name,
                                 (long long)labels->places.at[i].offset));
    text_string(out, "\n};\n");
}

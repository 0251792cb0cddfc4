/* Element types: which operators take, as the rules of <hetu/ops.h> say it, and elements in the type that is computed in. */
#include "cpu/cpu.h"
#include "eager/tape.h"

#include <hetu/rt.h>

static const char *name_of(ht_dtype dtype)
{
    static const char *const names[] = {[HT_F32] = "f32", [HT_BF16] = "bf16", [HT_F64] = "f64", [HT_I32] = "i32", [HT_I64] = "i64"};
    return names[dtype];
}

/* ---- what operators take ---- */

bool eager_is_integer(const ht_node *node) { return node->dtype == HT_I32 || node->dtype == HT_I64; }

ht_node *eager_operand(const char *operator, ht_tensor x)
{
    if (!x.node)
        ht_fail("%s: an operand is absent (HT_NONE)", operator);
    if (x.node->evaluation != eager_run.evaluation)
        ht_fail("%s: an operand is of an earlier step, or of another program; a model keeps no tensors", operator);
    eager_run.operator= operator;
    x.node->used = true;
    return x.node;
}

void eager_need_types(const char *operator, const char * name, const ht_node *node, unsigned types)
{
    if (!(types >> node->dtype & 1))
        ht_fail("%s: the kernel does not work in %s, the element type of %s; convert it first with ht_cast", operator, name_of(node->dtype),
                name);
}

void eager_need_type(const char *operator, const char * name, const ht_node *node, ht_dtype dtype)
{
    if (node->dtype != dtype)
        ht_fail("%s: the element type of %s is %s, but must be %s here; convert it first with ht_cast", operator, name,
                name_of(node->dtype), name_of(dtype));
}

void eager_need_integers(const char *operator, const char * name, const ht_node *node)
{
    if (!eager_is_integer(node))
        ht_fail("%s: the element type of %s is %s, but must be i32 or i64 here", operator, name, name_of(node->dtype));
}

void eager_need_fractions(const char *operator, const char * name, const ht_node *node)
{
    if (eager_is_integer(node))
        ht_fail("%s: %s is of type %s, and would make the result integers, which hold no fractions; convert it first: ht_cast(%s, HT_F32)",
                operator, name, name_of(node->dtype), name);
}

void eager_need_alike(const char *operator, const char * x_name, const ht_node *x, const char *z_name, const ht_node *z)
{
    if (x->dtype != z->dtype)
        ht_fail("%s: the element types of %s (%s) and %s (%s) differ; convert one of them first with ht_cast", operator, x_name,
                name_of(x->dtype), z_name, name_of(z->dtype));
}

/* ---- what is computed in ---- */

ht_dtype eager_working(ht_dtype dtype) { return dtype == HT_BF16 ? HT_F32 : dtype == HT_I32 ? HT_I64 : dtype; }

void *eager_target(ht_node *node)
{
    ht_dtype working = eager_working(node->dtype);
    return working == node->dtype ? eager_data(node) : eager_alloc((size_t)node->count * (size_t)cpu_size(working));
}

void *eager_read(ht_node *node)
{
    void *data = eager_data(node), *to = eager_target(node);
    for (int64_t i = 0; i < node->count && node->dtype == HT_BF16; i++)
        ((float *)to)[i] = ht_bf16_load(((const uint16_t *)data)[i]);
    for (int64_t i = 0; i < node->count && node->dtype == HT_I32; i++)
        ((int64_t *)to)[i] = ((const int32_t *)data)[i];
    return to;
}

void eager_written(ht_node *node, const void *from)
{
    for (int64_t i = 0; i < node->count && node->dtype == HT_BF16; i++)
        ((uint16_t *)node->data)[i] = ht_bf16_store(((const float *)from)[i]);
    for (int64_t i = 0; i < node->count && node->dtype == HT_I32; i++)
        ((int32_t *)node->data)[i] = (int32_t)((const int64_t *)from)[i];
}

// RUN: not %hetucc -c %s -o %t.o 2>&1 | FileCheck %s --implicit-check-not=error:
#include <hetu/hetu.h>

static ht_tensor x(void) { return ht_param(ht_shape(1, 4, 1), ht_normal(0.1f), "x"); }
static ht_tensor batch(void) { return ht_mean(ht_batch_norm(x(), HT_NONE, HT_NONE, 1e-5f)); }
static ht_tensor instance(void) { return ht_mean(ht_instance_norm(x(), HT_NONE, HT_NONE, 1e-5f)); }
static ht_tensor flat(void) { return ht_mean(ht_batch_norm(ht_reshape(x(), ht_shape(4)), HT_NONE, HT_NONE, 1e-5f)); }
static ht_tensor letters(void) { return ht_einsum("ij->", ht_list(x())); }
static ht_tensor operands(void) { return ht_einsum("ijk,i->", ht_list(x())); }
static ht_tensor result(void) { return ht_sum(ht_einsum("ijk->jj", ht_list(x()))); }
static ht_tensor extents(void) { return ht_einsum("iji->", ht_list(ht_transpose(x(), 0, 1))); }
static ht_tensor unknown(void) { return ht_einsum("i_k->", ht_list(x())); }
static ht_tensor wider(void) { return ht_expand(x(), ht_shape(2, 5, 1)); }
static ht_tensor fewer(void) { return ht_expand(x(), ht_shape(4, 1)); }
static ht_tensor still(void) { return ht_arange(0, 5, 0, HT_F32); }
static ht_tensor attended(void) { return ht_masked_attention(x(), x(), x()); }

int main(int argc, char **argv)
{
    ht_session *session = ht_open(&argc, &argv);
    ht_infer(session, batch), ht_infer(session, instance), ht_infer(session, flat), ht_infer(session, letters), ht_infer(session, operands),
        ht_infer(session, result);
    ht_infer(session, extents), ht_infer(session, unknown);
    ht_infer(session, wider), ht_infer(session, fewer), ht_infer(session, still), ht_infer(session, attended);
    return 0;
}

// CHECK: assertion-layers.c:5:47: error: the assertion "{{.*}}batch norm needs more than one element of each channel"" does not hold
// CHECK: assertion-layers.c:6:50: error: the assertion "{{.*}}instance norm needs more than one element of each channel of an image"" does not hold
// CHECK: assertion-layers.c:7:46: error: the assertion "{{.*}}channels stand in dimension 1, behind the batch"" does not hold
// CHECK: assertion-layers.c:8:{{.*}}einsum's text has a letter for each dimension"" does not hold
// CHECK: assertion-layers.c:9:{{.*}}einsum's text has as many operands as there are tensors"" does not hold
// CHECK: assertion-layers.c:10:{{.*}}a letter stands once in the result of ht_einsum"" does not hold
// CHECK: assertion-layers.c:11:{{.*}}a letter of ht_einsum has one extent"" does not hold
// CHECK: assertion-layers.c:12:{{.*}}einsum's text has letters, commas, an arrow and ..."" does not hold
// CHECK: assertion-layers.c:13:39: error: the assertion "{{.*}}ht_expand repeats dimensions of extent 1 alone"" does not hold
// CHECK: assertion-layers.c:14:39: error: the assertion "{{.*}}ht_expand takes no dimension away"" does not hold
// CHECK: assertion-layers.c:15:39: error: the assertion "{{.*}}ht_arange goes from start towards end"" does not hold
// CHECK: assertion-layers.c:16:42: error: the assertion "{{.*}}ht_masked_attention takes tensors of four dimensions"" does not hold

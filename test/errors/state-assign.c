// RUN: not %hetucc -c %s -o %t.o 2>&1 | FileCheck %s --strict-whitespace
#include <hetu/hetu.h>

static ht_tensor model(void)
{
    ht_tensor x = ht_input("x", HT_F32, ht_shape(4));
    ht_tensor cache = ht_state(ht_shape(4), ht_zeros(), "cache");
    ht_assign(cache, x);
    ht_assign(cache, ht_neg(x));
    return cache;
}

static ht_tensor other(void)
{
    ht_tensor x = ht_input("x", HT_F32, ht_shape(4)), w = ht_param(ht_shape(4), ht_zeros(), "w");
    ht_assign(w, x);
    return ht_add(w, x);
}

static ht_tensor shaped(void)
{
    ht_tensor x = ht_input("x", HT_F32, ht_shape(4)), cache = ht_state(ht_shape(3), ht_zeros(), "row");
    ht_assign(cache, x);
    return x;
}

int main(int argc, char **argv)
{
    ht_session *session = ht_open(&argc, &argv);
    ht_infer(session, model);
    ht_infer(session, other);
    ht_infer(session, shaped);
    return 0;
}

// CHECK: {{.*}}state-assign.c:9:5: error: the state "cache" is assigned twice
// CHECK: {{.*}}state-assign.c:8:5: note: it is assigned here, too
// CHECK: {{.*}}state-assign.c:16:5: error: ht_assign assigns states, and this is none: ht_state makes one
// CHECK: {{.*}}state-assign.c:15:59: note: the tensor is made here
// CHECK: {{.*}}state-assign.c:23:5: error: the state "row" is f32 of shape (3), and is assigned f32 of shape (4)
// CHECK: {{.*}}state-assign.c:22:63: note: the state is made here

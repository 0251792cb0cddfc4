// RUN: not %hetucc -c %s -o %t.o 2>&1 | FileCheck %s --strict-whitespace
#include <hetu/hetu.h>

#pragma hspmd op y[] = x[i..] epilogue(HT_RELU)
ht_tensor total(ht_tensor x);

static ht_tensor loss(void)
{
    ht_tensor x = ht_input("x", HT_F32, ht_shape(4, 6));
    ht_tensor w = ht_param(ht_shape(3, 6), ht_normal(0.1f), "w");
    return ht_mean(ht_linear(x, w, HT_NONE));
}

int main(int argc, char **argv)
{
    ht_session *session = ht_open(&argc, &argv);
    ht_train(session, loss, ht_sgd(.lr = 0.1f));
    return 0;
}

// CHECK: {{.*}}op-epilogue.c:4:18: error: the clause epilogue belongs to a rule of the form y[i..] = f(x[i..])
// CHECK-NEXT: {{^}}    4 | #pragma hspmd op y[] = x[i..] epilogue(HT_RELU)
// CHECK-NEXT: {{^}}      |                  ^

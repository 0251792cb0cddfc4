// Options have names: a number in the place of one is an error in hetucc and in the C compiler.
// RUN: not %hetucc -c %s -o %t.o 2>&1 | FileCheck %s --strict-whitespace
// RUN: not %cc %flags -c %s -o %t.o 2>&1 | FileCheck %s --check-prefix=CC
#include <hetu/hetu.h>

static ht_tensor loss(void)
{
    ht_tensor x = ht_input("x", HT_F32, ht_shape(4, 6));
    ht_output(ht_argmax(x, -1), "places");
    return ht_mean(x);
}

int main(int argc, char **argv)
{
    ht_session *session = ht_open(&argc, &argv);
    ht_train(session, loss, ht_adamw(.weigth_decay = 0.1f));
    srand(3);
    return 0;
}

// CC: options-names.c:9:28: error: {{.*}}flexible array member
// CHECK: {{.*}}options-names.c:9:28: error: initialization of flexible array member is not allowed
// CHECK-NEXT: {{^}}    9 |     ht_output(ht_argmax(x, -1), "places");
// CHECK-NEXT: {{^}}      |                            ^
// CHECK-NEXT: {{.*}}options-names.c:9:28: note: options have names, as in ht_sum(x, .dim = ht_shape(-1))
// CHECK: {{.*}}options-names.c:16:39: error: field designator 'weigth_decay' does not refer to any field
// CHECK: {{.*}}options-names.c:16:39: note: did you mean ".decay"?
// CHECK: {{.*}}options-names.c:16:39: note: there are .lr, .beta1, .beta2, .eps, .decay, .clip
// CHECK: {{.*}}options-names.c:17:5: error: call to undeclared function 'srand'
// CHECK: {{.*}}options-names.c:17:5: note: #include <stdlib.h> declares "srand"

// RUN: not %hetucc -c %s -o %t.o 2>&1 | FileCheck %s --strict-whitespace
#include <hetu/hetu.h>

static ht_tensor model(void)
{
    ht_tensor y = ht_cast(ht_scalar_at(2147483647, HT_I32), HT_F32);
    return ht_mul(y, ht_cast(ht_scalar_at(2147483648, HT_I32), HT_F32));
}

int main(int argc, char **argv)
{
    ht_run(ht_infer(ht_open(&argc, &argv), model));
    return 0;
}

// CHECK: {{.*}}assertion-scalar.c:7:30: error: the assertion "(dtype != HT_I32 || (value > -2147483649.0 && value < 2147483648.0)) && "the number fits into 32 bits"" does not hold
// CHECK-NEXT: {{^}}    7 |     return ht_mul(y, ht_cast(ht_scalar_at(2147483648, HT_I32), HT_F32));
// CHECK-NEXT: {{^}}      |                              ^
// CHECK-NEXT: {{.*}}assertion-scalar.c:7:30: note: in the call of ht_scalar_at
// CHECK-NEXT: {{^}}    7 |     return ht_mul(y, ht_cast(ht_scalar_at(2147483648, HT_I32), HT_F32));
// CHECK-NEXT: {{^}}      |                              ^

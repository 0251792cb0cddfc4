// RUN: not %hetucc -c %s -o %t.o 2>&1 | FileCheck %s --strict-whitespace
#include <hetu/hetu.h>

#pragma hspmd op y[r..] = mine(x[r.., c]) replicate(c) place(y: c) kernel(k) grad(none)
ht_tensor mine(ht_tensor x);

// CHECK: {{.*}}op-place.c:4:62: error: the result 'y' lacks the factor 'c'
// CHECK-NEXT: {{^}}    4 | #pragma hspmd op y[r..] = mine(x[r.., c]) replicate(c) place(y: c) kernel(k) grad(none)
// CHECK-NEXT: {{^}}      |                                                              ^

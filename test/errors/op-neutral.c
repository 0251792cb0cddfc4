// RUN: not %hetucc -c %s -o %t.o 2>&1 | FileCheck %s --strict-whitespace
#include <hetu/hetu.h>

#pragma hspmd op y[r.., c] = mine(x[r.., c]) replicate(c) neutral(x: least) kernel(k) grad(none)
ht_tensor mine(ht_tensor x, float least);
#pragma hspmd op y[r.., c] = other(x[r.., c]) replicate(c) neutral(x: 0, x: 1) kernel(k) grad(none)
ht_tensor other(ht_tensor x);

// CHECK: {{.*}}op-neutral.c:4:70: error: expected a number or a function of numbers, as in neutral(x: logf(0)), not 'least'
// CHECK-NEXT: {{^}}    4 | #pragma hspmd op y[r.., c] = mine(x[r.., c]) replicate(c) neutral(x: least) kernel(k) grad(none)
// CHECK-NEXT: {{^}}      |                                                                      ^
// CHECK-NEXT: {{.*}}op-neutral.c:6:74: error: this clause says something of 'x' a second time
// CHECK-NEXT: {{^}}    6 | #pragma hspmd op y[r.., c] = other(x[r.., c]) replicate(c) neutral(x: 0, x: 1) kernel(k) grad(none)
// CHECK-NEXT: {{^}}      |                                                                          ^

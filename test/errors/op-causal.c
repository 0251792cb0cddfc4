// RUN: not %hetucc -c %s -o %t.o 2>&1 | FileCheck %s --strict-whitespace
#include <hetu/hetu.h>

#pragma hspmd op y[r.., c] = mine(x[r.., c]) replicate(c) causal(c, c: 1) kernel(k) grad(none)
ht_tensor mine(ht_tensor x);
#pragma hspmd op y[s] = other(x[t], z[s]) replicate(t) causal(s, t: flag) kernel(k) grad(none)
ht_tensor other(ht_tensor x, ht_tensor z, float flag);

// CHECK: {{.*}}op-causal.c:4:70: error: the clause names two factors that each stand for one dimension
// CHECK-NEXT: {{^}}    4 | #pragma hspmd op y[r.., c] = mine(x[r.., c]) replicate(c) causal(c, c: 1) kernel(k) grad(none)
// CHECK-NEXT: {{^}}      |                                                                      ^
// CHECK-NEXT: {{.*}}op-causal.c:6:69: error: 'flag' is not an integer parameter of the function
// CHECK-NEXT: {{^}}    6 | #pragma hspmd op y[s] = other(x[t], z[s]) replicate(t) causal(s, t: flag) kernel(k) grad(none)
// CHECK-NEXT: {{^}}      |                                                                     ^

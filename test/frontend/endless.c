// Loops and recursion without an end are stopped and reported.
// RUN: not %hetucc --stop-after=frontend %s 2>&1 | FileCheck %s

#include <hetu/hetu.h>

static ht_tensor input(void)
{
    return ht_input("x", HT_F32, ht_shape(4));
}

ht_tensor spin(void)
{
    for (int i = 0; i < 10; i++)
        // CHECK: endless.c:[[#@LINE+1]]:9: error: this loop is too long to be evaluated at compile time, or does not end
        while (1)
            for (int k = 0; k < 100; k++)
                ;
    return input();
}

ht_tensor grow(void)
{
    ht_tensor x = input();
    // CHECK: endless.c:[[#@LINE+1]]:5: error: this loop is too long to be evaluated at compile time, or does not end
    for (unsigned i = 3; i >= 0; i--)
        x = ht_relu(x);
    return x;
}

static int down(int n)
{
    // CHECK: endless.c:[[#@LINE+2]]:12: error: the recursion of down is deeper than
    // CHECK: note: in the call of down
    return down(n - 1) + 1;
}

ht_tensor deep(void)
{
    return ht_scale(input(), (float)down(3));
}

int main(int argc, char **argv)
{
    ht_session *session = ht_open(&argc, &argv);
    ht_infer(session, spin);
    ht_infer(session, grow);
    ht_infer(session, deep);
}

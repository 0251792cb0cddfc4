// Texts that are formatted again and again take the memory of one.
// UNSUPPORTED: sanitizers
// RUN: %python -c "import resource, subprocess, sys; subprocess.run(sys.argv[1:], check=True); sys.exit(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss > 300000)" %hetucc --stop-after=frontend %s

#include <hetu/hetu.h>
#include <stdio.h>

static ht_tensor model(void)
{
    char name[32];
    for (int i = 0; i < 200000; i++)
        snprintf(name, sizeof name, "h%d.%s", i, "weight");
    return ht_mean(ht_param(ht_shape(4), ht_ones(), name));
}

int main(int argc, char **argv)
{
    ht_infer(ht_open(&argc, &argv), model);
}

/* What another user wants to run: says that it did, in a folder that all may write to, beside the one that the program runs in. */
#include <stdio.h>

__attribute__((constructor)) static void run(void)
{
    FILE *file = fopen("../theirs/ran", "w");
    if (file)
        fclose(file);
}

#include <math.h>
#include <stdio.h>
int helper(void);
int main(void)
{
    printf("plain %d %.1f\n", helper(), cos(helper() - 7));
    return 0;
}

/* Migration: the bytes that a switch of strategies moves, for a weight of 8 x 6 elements and its two AdamW states (192 bytes each).

Pieces of what every device has cost nothing; the way back, each of two devices lacks half of all three.
RUN: %hetucc -Rswitch --strategy=whole --strategy=rows -O1 %s -o %t 2>&1 | FileCheck %s --check-prefix=CUT
CUT: loss goes from strategy "whole" to "rows" with 0 bytes received in all, messages: 0
RUN: %hetucc -Rswitch --strategy=rows --strategy=whole -O1 %s -o %t 2>&1 | FileCheck %s --check-prefix=WHOLE
WHOLE: loss goes from strategy "rows" to "whole" with 576 bytes received in all

Other devices get everything: halves to two, or all of it to one.
RUN: %hetucc -Rswitch --strategy=rows --strategy=others -O1 %s -o %t 2>&1 | FileCheck %s --check-prefix=OTHERS
OTHERS: loss goes from strategy "rows" to "others" with 576 bytes received in all
RUN: %hetucc -Rswitch --strategy=rows --strategy=one -O1 %s -o %t 2>&1 | FileCheck %s --check-prefix=ONE
ONE: loss goes from strategy "rows" to "one" with 288 bytes received in all

From rows to columns each device keeps a quarter of the weight, and gets another one.
RUN: %hetucc -Rswitch --strategy=rows --strategy=columns -O1 %s -o %t 2>&1 | FileCheck %s --check-prefix=TURNED
TURNED: loss goes from strategy "rows" to "columns" with 288 bytes received in all

Uneven pieces: of eight rows the first device has six, so that the second one lacks nothing and the first one two rows.
RUN: %hetucc -Rswitch --strategy=rows --strategy=uneven -O1 %s -o %t 2>&1 | FileCheck %s --check-prefix=UNEVEN
UNEVEN: loss goes from strategy "rows" to "uneven" with 144 bytes received in all

The values are those of one device, whatever the way.
RUN: %hetucc --strategy=whole --strategy=rows --strategy=columns --strategy=uneven --strategy=others --strategy=one -O1 %s -o %t
RUN: %mpirun 4 %t whole rows columns uneven others one rows > %t.many
RUN: %cc %s -o %t.plain %flags && %t.plain whole rows columns uneven others one rows > %t.one && diff %t.many %t.one
*/
#include <hetu/hetu.h>
#include <stdio.h>

#pragma hspmd strategy whole
#pragma hspmd   split batch:dp
#pragma hspmd   stage devices(0-1) mesh(dp:2)
#pragma hspmd   idle devices(2-3)
#pragma hspmd end strategy

#pragma hspmd strategy rows
#pragma hspmd   split out:tp
#pragma hspmd   stage devices(0-1) mesh(tp:2)
#pragma hspmd   idle devices(2-3)
#pragma hspmd end strategy

#pragma hspmd strategy columns
#pragma hspmd   split in:tp
#pragma hspmd   stage devices(0-1) mesh(tp:2)
#pragma hspmd   idle devices(2-3)
#pragma hspmd end strategy

#pragma hspmd strategy uneven
#pragma hspmd   split out:tp
#pragma hspmd   stage devices(0-1) mesh(tp:2 by 3:1)
#pragma hspmd   idle devices(2-3)
#pragma hspmd end strategy

#pragma hspmd strategy others
#pragma hspmd   split out:tp
#pragma hspmd   stage devices(2-3) mesh(tp:2)
#pragma hspmd   idle devices(0-1)
#pragma hspmd end strategy

#pragma hspmd strategy one
#pragma hspmd   stage devices(0)
#pragma hspmd   idle devices(1-3)
#pragma hspmd end strategy

static ht_tensor loss(void)
{
    ht_tensor x = ht_input("x", HT_F32, ht_shape(4, 6)), w = ht_param(ht_shape(8, 6), ht_normal(0.5f), "w");
#pragma hspmd dims(x: batch, _)
#pragma hspmd dims(w: out, in)
    ht_tensor y = ht_linear(x, w, HT_NONE);
    return ht_mean(ht_mul(y, y));
}

int main(int argc, char **argv)
{
    static float x[4 * 6];
    ht_session *session = ht_open(&argc, &argv);
    ht_program *program = ht_train(session, loss, ht_adamw(.lr = 0.05f));
    for (int i = 0; i < 4 * 6; i++)
        x[i] = (float)(i * 5 % 7 - 3);
    for (int k = 1; k < argc; k++) {
        ht_switch(program, argv[k]);
        printf("%.3f\n", ht_step(program, ht_feed("x", x)));
    }
    return 0;
}

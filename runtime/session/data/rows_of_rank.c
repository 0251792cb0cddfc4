/* Reads the rows, or parts of rows, of a dataset that a rank needs: those of its piece of the
 * input's layout. So ranks with equal pieces, as along tp, read the same rows. dataset.c reads
 * files; shuffle.c decides the order of rows in an epoch; assign_rows.c gives rows to pipelines. */
#include "session/core/program.h"

#include "base/fail.h"
#include "exchange/copy_boxes.h"
#include "session/data/boxes.h"
#include "transport/world.h"

#include <stdlib.h>

void program_read(Program *program, int input, const RowsPlan *rows) {
    const ht_image_input *image = &program->image->inputs[input];
    bool here = world_rank() < program->image->device_count;
    int64_t count = here ? boxes_count(image->pieces, world_rank()) : 0,
            size = (int64_t)ht_dtype_bytes(image->dtype);
    fail_doing(image->at);
    if (count) {
        void *memory = program_input_slots(program)[input];
        char *host = device_map(memory, count * size, DEVICE_WRITE);
        Stretches stretches = boxes_stretches(image->pieces, world_rank());
        for (int64_t i = 0; i < stretches.count; i++) {
            const Stretch *stretch = &stretches.stretch[i];
            dataset_fill(rows, image->dtype, stretch->lo, stretch->hi, host + stretch->at * size);
        }
        free(stretches.stretch);
        device_unmap(memory, host, count * size, DEVICE_WRITE);
    }
    program->fed[input] = true;
    fail_doing(NULL);
}

/* Representative devices: pipelines that share a template are laid out once, on the devices of the
 * first of them.
 *
 *     pipeline stage devices(0-1) mesh(tp:2)     template 0
 *     pipeline stage devices(2-3) mesh(tp:2)     template 0, too: 0 represents 2, and 1 represents
 * 3
 *
 * An operator of a stage has values on devices 0 and 1. Devices 2 and 3 do the same with their own
 * rows of the batch. A device outside of pipelines represents itself.
 */
#ifndef IR_PROGRAMS_REPRESENTATIVES_H
#define IR_PROGRAMS_REPRESENTATIVES_H

#include "ir/module.h"

/* Returns the device on which the work of `device` is laid out. */
int representative_device(Module *module, int device);

/* Returns the same for one operator: an operator on all devices represents none by another. */
int op_representative_device(Module *module, const Op *op, int device);

/* Enumerate the devices that a device represents, in ascending order; -1 ends them. */
int first_represented(Module *module, int representative);
int next_represented(Module *module, int device);

/* Returns the pipeline of a device, and its stage there in *stage; NULL: the batch runs as a
 * whole. */
const PipelineRun *device_run(Module *module, int device, int *stage);

#endif

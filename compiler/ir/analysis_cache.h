/* The analysis cache of a module: memoized results of functions of its IR. The functions named
 * beside each table make and read it; nothing else does.
 *
 *     value_region(module, value, 3)     computes the regions of all devices, for layout and type
 *     value_region(module, value, 5)     finds the region of device 5 in cache->regions
 *
 * The cache is no part of the IR: printed text that is parsed again begins with an empty one. */
#pragma once

#include "support/intern.h"

typedef struct AnalysisCache {
    struct CallTable *calls;     // ir_op, module_def (ir/module.c)
    struct RegionTable *regions; // value_region (ir/programs)
    struct Posts *posts;         // representative_device, device_run (ir/programs)
    Intern *scratch;             // role_scratch_bytes (ir/programs)
    Intern *plans;               // module_plan (ir/programs)
    Intern *interned;            // module_interned
    Intern *equal;               // module_layouts_equal
    Intern *sharded_replicas;    // module_layout_shard_replicas
    Intern *equivalent_devices;  // module_equivalent_devices
} AnalysisCache;

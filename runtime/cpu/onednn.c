#include "cpu/onednn.h"

#include "cpu/cpu.h"

#include <hetu/rt.h>

#include <stdlib.h>
#include <string.h>

Engine onednn_choice(void) {
    const char *choice = getenv("HETU_PRODUCTS");
    if (!choice || !*choice) return ENGINE_BY_TYPE;
    if (!strcmp(choice, "openblas")) return ENGINE_OPENBLAS;
    if (strcmp(choice, "onednn") != 0)
        ht_fail("HETU_PRODUCTS=%s: it is onednn or openblas", choice);
#ifndef HETU_ONEDNN
    ht_fail("HETU_PRODUCTS=onednn, but libhetu was built without oneDNN; build it where oneDNN is "
            "installed (Debian: apt-get install libdnnl-dev)");
#endif
    return ENGINE_ONEDNN;
}

#ifdef HETU_ONEDNN

#include <pthread.h>

static Onednn opened;

static void open_engine(void) {
    onednn_need(dnnl_engine_create(&opened.engine, dnnl_cpu, 0), "dnnl_engine_create");
    onednn_need(dnnl_stream_create(&opened.stream, opened.engine, dnnl_stream_default_flags),
                "dnnl_stream_create");
}

const Onednn *onednn_open(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, open_engine);
    return &opened;
}

void onednn_need(dnnl_status_t status, const char *what) {
    if (status != dnnl_success) ht_fail("oneDNN: %s failed with status %d", what, (int)status);
}

bool onednn_has_bf16(void) {
    int isa = (int)dnnl_get_effective_cpu_isa();
    return (isa & dnnl_cpu_isa_avx512_core_bf16) == dnnl_cpu_isa_avx512_core_bf16;
}

bool onednn_has_avx512(void) {
    int isa = (int)dnnl_get_effective_cpu_isa();
    return (isa & dnnl_cpu_isa_avx512_core) == dnnl_cpu_isa_avx512_core;
}

dnnl_data_type_t onednn_type(ht_dtype dtype) { return dtype == HT_BF16 ? dnnl_bf16 : dnnl_f32; }

OnednnDesc onednn_describe(int rank, const int64_t *extent, const int64_t *stride,
                           dnnl_data_type_t type) {
    dnnl_dims_t extents, strides;
    memcpy(extents, extent, (size_t)rank * sizeof *extent);
    if (stride) memcpy(strides, stride, (size_t)rank * sizeof *stride);
#if DNNL_VERSION_MAJOR >= 3
    dnnl_memory_desc_t desc;
    dnnl_status_t status =
        stride ? dnnl_memory_desc_create_with_strides(&desc, rank, extents, type, strides)
               : dnnl_memory_desc_create_with_tag(&desc, rank, extents, type, dnnl_format_tag_any);
    return status == dnnl_success ? desc : NULL;
#else
    dnnl_memory_desc_t *desc = cpu_alloc(sizeof *desc);
    dnnl_status_t status =
        stride ? dnnl_memory_desc_init_by_strides(desc, rank, extents, type, strides)
               : dnnl_memory_desc_init_by_tag(desc, rank, extents, type, dnnl_format_tag_any);
    if (status == dnnl_success) return desc;
    free(desc);
    return NULL;
#endif
}

void onednn_forget(OnednnDesc desc) {
#if DNNL_VERSION_MAJOR >= 3
    if (desc) dnnl_memory_desc_destroy((dnnl_memory_desc_t)desc);
#else
    free((void *)desc);
#endif
}

OnednnDesc onednn_wanted(const_dnnl_primitive_desc_t chosen, dnnl_query_t what) {
    return dnnl_primitive_desc_query_md(chosen, what, 0);
}

void onednn_run(dnnl_primitive_t primitive, int count, const dnnl_exec_arg_t *arguments) {
    onednn_need(dnnl_primitive_execute(primitive, opened.stream, count, arguments),
                "dnnl_primitive_execute");
    onednn_need(dnnl_stream_wait(opened.stream), "dnnl_stream_wait");
}

dnnl_primitive_t onednn_create(dnnl_primitive_desc_t chosen) {
    const char *name = "";
    dnnl_primitive_t primitive = NULL;
    onednn_need(dnnl_primitive_desc_query(chosen, dnnl_query_impl_info_str, 0, (void *)&name),
                "dnnl_primitive_desc_query");
    if (strncmp(name, "ref", 3) != 0)
        onednn_need(dnnl_primitive_create(&primitive, chosen), "dnnl_primitive_create");
    return primitive;
}

#endif

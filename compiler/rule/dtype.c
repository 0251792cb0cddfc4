#include "rule/dtype.h"

const char *dtype_name(DType dtype) {
    static const char *const names[] = {[DTYPE_F32] = "f32",
                                        [DTYPE_BF16] = "bf16",
                                        [DTYPE_F64] = "f64",
                                        [DTYPE_I32] = "i32",
                                        [DTYPE_I64] = "i64"};
    return names[dtype];
}

int dtype_size(DType dtype) {
    static const int sizes[] = {
        [DTYPE_F32] = 4, [DTYPE_BF16] = 2, [DTYPE_F64] = 8, [DTYPE_I32] = 4, [DTYPE_I64] = 8};
    return sizes[dtype];
}

DType dtype_wide(DType dtype) {
    return dtype == DTYPE_BF16 ? DTYPE_F32 : dtype == DTYPE_I32 ? DTYPE_I64 : dtype;
}

bool dtype_is_float(DType dtype) {
    return dtype == DTYPE_F32 || dtype == DTYPE_BF16 || dtype == DTYPE_F64;
}

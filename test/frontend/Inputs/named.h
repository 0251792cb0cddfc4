#define NAME_IN_HEADER(x) _Pragma("hspmd dims(z: header)") (void)0

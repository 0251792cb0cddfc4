#include <hetu/hetu.h>

ht_tensor layer(ht_tensor x);

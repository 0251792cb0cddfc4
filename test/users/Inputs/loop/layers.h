#include <hetu/hetu.h>

enum { ROWS = 8, WIDTH = 6 };

ht_tensor block(ht_tensor x);
ht_tensor loss(void);
ht_tensor model(void);
ht_optimizer chosen(void);

#include "planner/kinds/degrees.h"

#include <stdlib.h>
#include <string.h>

void degrees_read(Field table, double *by_devices, int most) {
    const char *key;
    json_t *value;
    memset(by_devices, 0, sizeof *by_devices * (size_t)(most + 1));
    if (table.json && !json_is_object(table.json))
        field_refuse(table, "it is not an object of numbers of devices");
    json_object_foreach((json_t *)table.json, key, value) {
        char *end;
        long devices = strtol(key, &end, 10);
        Field entry = field_get(table, key);
        if (*end || *key < '1' || *key > '9' || devices > most)
            field_refuse(entry, "the key is not a number of devices in 1..%d", most);
        else
            by_devices[devices] = field_positive(entry);
    }
}

void degrees_need(Field table, const double *by_devices, int devices) {
    if (by_devices[devices] <= 0) field_refuse(table, "there is no entry for %d", devices);
}

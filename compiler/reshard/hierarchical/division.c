#include "reshard/hierarchical/division.h"

int64_t next_slice(Divisions *divisions, int64_t lo, int64_t hi) {
    for (int d = 0; d < divisions->count; d++) {
        Division *division = &divisions->at[d];
        while (!division->left && division->at + 1 < division->devices.count)
            division->left = division->shares[++division->at];
        hi = division->left && lo + division->left < hi ? lo + division->left : hi;
    }
    for (int d = 0; d < divisions->count; d++) divisions->at[d].left -= hi - lo;
    return hi;
}

void begin_slices(Divisions *divisions) {
    for (int d = 0; d < divisions->count; d++) {
        divisions->at[d].at = 0;
        divisions->at[d].left = divisions->at[d].shares[0];
    }
}

int slice_device(const Division *division) { return division->devices.at[division->at]; }

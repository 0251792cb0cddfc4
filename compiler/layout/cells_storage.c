/* Where cells lie in the storage of devices, and whether that is the same on both sides. */
#include "layout/cells_build.h"

/* ---- storage ---- */

/* The coordinates of a cell's first element in the numbering of a layout. */
static void cell_corner(const Cells *cells, const Layout *layout, int cell, int64_t *corner)
{
    int index[CELL_MAX_RANK];
    cell_index(cells, cell, index);
    Shape view = layout_view(layout, cells->shape);
    for (int d = 0, f = 0; d < cells->shape.rank; d++) {
        int64_t place = 0;
        for (; f < cells->rank && cells->dim[f] == d; f++)
            place += cells->cuts[f][index[f]] * cells->weight[f];
        int first, last = view_factors(layout, d, &first);
        for (int v = last - 1; v >= first; v--) {
            corner[v] = place % view.extent[v];
            place /= view.extent[v];
        }
    }
}

/* The box of a region in which a place lies. */
static int box_at(const Region *region, const int64_t *place)
{
    for (int b = 0; b < region->box_count; b++) {
        bool inside = true;
        for (int d = 0; d < region->rank && inside; d++)
            inside = region->boxes[b].dim[d].lo <= place[d] && place[d] < region->boxes[b].dim[d].hi;
        if (inside)
            return b;
    }
    BUG("a cell lies outside of the piece that holds it");
}

/* Strides along the factors of the common view that belong to dimension `dim`, from those along the view's factors. */
static void common_strides(const Cells *cells, const Layout *layout, int dim, const int64_t *along, int64_t *strides)
{
    Shape view = layout_view(layout, cells->shape);
    int first, last = view_factors(layout, dim, &first), begin, end = common_factors(cells, dim, &begin);
    int64_t weight = 1; // of the view's factor v
    int v = last - 1;
    for (int f = end - 1; f >= begin; f--) {
        while (!cells->flat[dim] && v > first && cells->weight[f] >= weight * view.extent[v])
            weight *= view.extent[v--];
        strides[f] = v >= first ? cells->weight[f] / weight * along[v] : 0;
    }
}

int64_t cell_storage(const Cells *cells, Side side, int piece, int cell, int64_t *strides)
{
    const Layout *layout = cells->side[side].layout;
    const Piece *holder = &cells->side[side].pieces[piece];
    int64_t corner[LAYOUT_MAX_RANK], along[LAYOUT_MAX_RANK];
    cell_corner(cells, layout, cell, corner);
    int b = box_at(holder->region, corner);
    int64_t offset = holder->storage[b], step = 1;
    for (int v = holder->region->rank - 1; v >= 0; v--) {
        Range range = holder->region->boxes[b].dim[v];
        along[v] = step;
        offset += (corner[v] - range.lo) * step;
        step *= range.hi - range.lo;
    }
    for (int d = 0; d < cells->shape.rank; d++)
        common_strides(cells, layout, d, along, strides);
    return offset;
}

/* ---- equality ---- */

/* Whether two pieces have the same devices and, where contributions matter, stand for the same one. */
static bool same_holders(const Cells *cells, int from, int to)
{
    const Piece *a = &cells->side[SIDE_FROM].pieces[from], *b = &cells->side[SIDE_TO].pieces[to];
    if (a->device_count != b->device_count || a->replica != b->replica || a->partial != b->partial)
        return false;
    for (int i = 0; i < a->device_count; i++)
        if (cells_piece_of(cells, SIDE_TO, a->devices[i]) != to)
            return false;
    return true;
}

bool cells_same_storage(const Cells *cells, int cell, int from, int to)
{
    int64_t extents[CELL_MAX_RANK], a[CELL_MAX_RANK], b[CELL_MAX_RANK];
    cell_extents(cells, cell, extents);
    if (cell_storage(cells, SIDE_FROM, from, cell, a) != cell_storage(cells, SIDE_TO, to, cell, b))
        return false;
    for (int f = 0; f < cells->rank; f++)
        if (extents[f] > 1 && a[f] != b[f])
            return false;
    return true;
}

/* Whether every piece of the first side that holds the bundle is one of the second, too. */
static bool bundle_equal(const Cells *cells, const Bundle *bundle)
{
    if (bundle->holder_count[0] != bundle->holder_count[1])
        return false;
    for (int h = 0; h < bundle->holder_count[0]; h++) {
        int from = bundle->holders[0][h], to = cells_piece_of(cells, SIDE_TO, cells->side[SIDE_FROM].pieces[from].devices[0]);
        if (to < 0 || !same_holders(cells, from, to))
            return false;
        for (int c = 0; c < bundle->cell_count; c++) {
            bool held = false;
            for (int k = 0; k < bundle->holder_count[1]; k++)
                held = held || bundle->holders[1][k] == to;
            if (!held || !cells_same_storage(cells, bundle->cells[c], from, to))
                return false;
        }
    }
    return true;
}

bool cells_equal(const Cells *cells)
{
    if (cells->side[0].partial != cells->side[1].partial)
        return false;
    for (int b = 0; b < cells->bundle_count; b++)
        if (!bundle_equal(cells, &cells->bundles[b]))
            return false;
    return true;
}

/* Compiles the waiting models of objects and archives when hetucc links. */
#include "driver/object_sections.h"

#include <string.h>

static const Options *merged_options(Driver *driver, const Portion *part) {
    Arena *arena = driver->arena;
    const Options *link = driver->options;
    Options *own = arena_new(arena, Options);
    Array(char *) words = {0};
    array_push(arena, &words, arena_string(arena, "hetucc"));
    for (int i = 0; i < part->words.count; i++)
        array_push(arena, &words, arena_string(arena, part->words.at[i]));
    if (is_c_by_option(part->front.file)) {
        array_push(arena, &words, arena_string(arena, "-x"));
        array_push(arena, &words, arena_string(arena, "c"));
    }
    array_push(arena, &words, arena_string(arena, part->front.file));
    array_push(arena, &words, NULL);
    options_read(arena, own, words.count - 1, words.at);
    if (link->strategies.count) memcpy(&own->strategies, &link->strategies, sizeof own->strategies);
    own->cluster = link->cluster ? link->cluster : own->cluster;
    own->passes.bucket = link->passes.bucket ? link->passes.bucket : own->passes.bucket;
    own->passes.chunk = link->passes.chunk ? link->passes.chunk : own->passes.chunk;
    own->passes.no_fuse |= link->passes.no_fuse;
    own->passes.no_views |= link->passes.no_views;
    own->passes.no_chunks |= link->passes.no_chunks;
    own->passes.no_overlap |= link->passes.no_overlap;
    for (int r = 0; r < REMARKS; r++) own->remarks[r] |= link->remarks[r];
    own->passes.warn_implicit_reshard |= link->passes.warn_implicit_reshard;
    own->print_after = link->print_after;
    own->stop_after = link->stop_after;
    own->resume = link->resume;
    own->known = link->known;
    own->dry_run = link->dry_run;
    own->save_temps = link->save_temps;
    return own;
}

Driver *section_driver(Driver *driver, const Portion *part) {
    const PortionList *parts = driver_sections(driver);
    Driver *own = arena_copy(driver->arena, driver, sizeof *driver);
    own->options = merged_options(driver, part);
    own->part = part;
    own->prepares = false;
    return parts ? own : NULL;
}

bool sections_read(Driver *driver) {
    const PortionList *waiting = driver_waiting(driver);
    bool good = waiting;
    for (int i = 0; i < driver->options->cc.items.count && good; i++)
        if (driver->options->cc.items.at[i].kind == ITEM_SOURCE)
            good = unit_read(driver, driver->options->cc.items.at[i].text);
    for (int i = 0; good && i < waiting->count; i++) {
        Driver *own = section_driver(driver, waiting->at[i]);
        good = own && unit_read(own, waiting->at[i]->front.file);
        if (good) memcpy(&driver->modules, &own->modules, sizeof driver->modules);
    }
    return good;
}

int section_make(Driver *driver, const Portion *part, const char *object) {
    if (!part->alone) {
        complain("the models of %s wait for other files, and %s has been joined of several "
                 "objects: give hetucc these one by one",
                 part->front.file, part->object);
        return 1;
    }
    Driver *own = section_driver(driver, part);
    Unit *unit = own ? unit_read(own, part->front.file) : NULL;
    int status = unit ? unit_compile(own, unit, object) : 1;
    if (own) {
        driver->prepares |= own->prepares;
        memcpy(&driver->modules, &own->modules, sizeof driver->modules);
    }
    return status;
}

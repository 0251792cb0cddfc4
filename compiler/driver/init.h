/* A first program to begin with: hetucc --init FOLDER. */
#ifndef DRIVER_INIT_H
#define DRIVER_INIT_H

#include "driver/toolchain.h"

/* Copies the files of examples/start, as they are installed, into a folder, which is made if it is
 * missing. Replaces no file. Prints what to do next. Returns the exit status. */
int init_folder(const Toolchain *tools, const char *folder);

#endif

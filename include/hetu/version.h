/* The version of hetucc, libhetu and the programs that they make. CMake reads it here, too. */
#ifndef HETU_VERSION_H
#define HETU_VERSION_H

#define HETU_VERSION "0.1.0"

#endif

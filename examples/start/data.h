/* Batches of a text file: runs of bytes from random places, and the byte after each run. */
#ifndef DATA_H
#define DATA_H

#include <stddef.h>
#include <stdint.h>

typedef struct Text {
    unsigned char *bytes;
    size_t size;
    uint64_t draw; // state of the random numbers
} Text;

/* Reads a file of more than `least` bytes; ends the program with a message where it cannot. */
Text text_read(const char *path, size_t least);

/* Fills `context` (rows, length) with runs of bytes, and `next` (rows) with the byte after each. */
void text_batch(Text *text, int rows, int length, int32_t *context, int32_t *next);

#endif

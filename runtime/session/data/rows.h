/* Feeds of files (ht_dataset), on rank 0: which rows a step reads. */
#ifndef SESSION_DATA_ROWS_H
#define SESSION_DATA_ROWS_H

#include "session/core/session.h"

/* The dataset of a name, which is made with nothing read where it is new. */
Dataset *rows_dataset(ht_session *session, const char *name);

/* Has all ranks read the rows that feeds of a step name, each its own; the program ends with one
 * line where a file cannot be read, or is not what an input takes. */
void rows_read(ht_session *session, const Program *program, int number, const ht_fed *feeds);

/* The same for the one-device library: the feeds with arrays in place of files; rows_free frees
 * them. NULL: none is of a file. */
ht_fed *rows_arrays(ht_session *session, eager_program *program, const ht_fed *feeds);
void rows_free(ht_fed *feeds);

#endif

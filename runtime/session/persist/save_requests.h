/* Checkpoints as main asks for them, on rank 0. */
#ifndef SESSION_PERSIST_SAVE_REQUESTS_H
#define SESSION_PERSIST_SAVE_REQUESTS_H

#include "session/core/session.h"

/* Steps that the first program that trains has made; 0 where none does. */
int64_t saved_steps(const ht_session *session);

/* ht_save, with main's numbers as they were when so many steps were made. */
void saved_save(ht_session *session, const char *folder, const ht_noted *noted, int64_t noted_at);

/* What stands in front of the names of main's numbers in a checkpoint. */
#define SAVED_NUMBER "number."

#endif

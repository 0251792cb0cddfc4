/* Registers the one-device library with the session. */
#include "eager/eager.h"

static const EagerLibrary library = {
    eager_store_create,  eager_store_param,   eager_store_find,     eager_program_create,
    eager_program_shape, eager_program_step,  eager_program_tokens, eager_program_grad_norm,
    eager_program_named, eager_program_fetch, eager_program_forget, eager_store_state,
    eager_store_resume,  eager_program_resume};

__attribute__((constructor)) static void register_library(void) { session_use_eager(&library); }

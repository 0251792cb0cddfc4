#include "passes/microbatch/cut.h"

const Value *microbatch_input(const Module *module)
{
    for (int i = 0; i < module->inputs.count; i++)
        if (module->inputs.at[i]->type.rank)
            return module->inputs.at[i];
    return NULL;
}

bool microbatch_rows(const Module *module, int64_t *rows)
{
    const Value *input = microbatch_input(module);
    const Pipeline *pipeline = module->strategy ? &module->strategy->pipelines.at[0] : NULL;
    int64_t all = input ? input->type.extent[0] : 0;
    long count = (long)module->microbatches;
    *rows = count > 1 ? all / count : all;
    if (count <= 1 && !(pipeline && pipeline->rows && module->kind == MODULE_TRAIN))
        return true;
    if (!input)
        diag_error(module->diag, pipeline->at,
                   "the strategy asks for %ld micro-batches, but the model has no input whose rows they could share", count);
    else if (*rows * count != all || !all)
        diag_error(module->diag, pipeline->at, "a batch of %ld rows does not divide into %ld micro-batches", (long)all, count);
    else if (pipeline->rows && pipeline->rows != *rows)
        diag_error(module->diag, pipeline->at, "%ld micro-batch%s of %ld rows %s not the batch of %ld rows", count, count > 1 ? "es" : "",
                   (long)pipeline->rows, count > 1 ? "are" : "is", (long)all);
    else
        return true;
    return false;
}

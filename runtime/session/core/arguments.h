/* What ht_train and ht_infer are given: a model, options, and optimizers with groups of
 * parameters. */
#ifndef SESSION_CORE_ARGUMENTS_H
#define SESSION_CORE_ARGUMENTS_H

#include <hetu/hetu.h>

/* Ends the program with a message where there is no model, or no such type to compute in. */
void check_given(ht_tensor (*model)(void), const ht_program_options *options);

/* The same where an optimizer neither has a rule nor updates, where there are too many groups or
 * such without names, and where operators of two kinds update: rules stand beside any optimizer, of
 * operators a program has one, in hetucc, too. */
void check_optimizers(const ht_optimizer *optimizer, ht_group_list groups);

/* The numbers of the optimizer, then those of the groups', HT_HYPER each, go to `hyper`. */
void take_numbers(float *hyper, const ht_optimizer *optimizer, ht_group_list groups);

/* "adamw; *.norm lion": the optimizer, and those of groups, for the caller to free; NULL where one
 * has no name. */
char *optimizer_names(const ht_optimizer *optimizer, ht_group_list groups);

#endif

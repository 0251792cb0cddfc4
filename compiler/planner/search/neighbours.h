/* Strategies like one that was tried: each adds to the list what differs in one way. */
#ifndef PLANNER_SEARCH_NEIGHBOURS_H
#define PLANNER_SEARCH_NEIGHBOURS_H

#include "planner/search/evaluated.h"

/* Adds a copy that lives as long as the search, with what closed forms say of it. */
void add_changed(Search *search, CandidateList *list, const Candidate *changed);

/* More and fewer rows in a micro-batch. */
void change_rows(Search *search, CandidateList *list, const Candidate *candidate);

/* A layer from each stage to its neighbours. */
void change_layers(Search *search, CandidateList *list, const Candidate *candidate);

/* All stages in each way to recompute; each level of ZeRO. */
void change_modes(Search *search, CandidateList *list, const Candidate *candidate);

#endif

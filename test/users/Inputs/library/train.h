#ifndef TRAIN_H
#define TRAIN_H

#ifdef __cplusplus
extern "C" {
#endif

/* Trains for some steps: the devices that there are. */
int train(int *argc, char ***argv, int steps, float *losses);

/* Plain C, in a file without models. */
float row_value(int i);

#ifdef __cplusplus
}
#endif

#endif

/* What the C++ main sees of the model. */
#ifdef __cplusplus
extern "C" {
#endif
void train(int *argc, char ***argv, int steps, float *losses);
#ifdef __cplusplus
}
#endif

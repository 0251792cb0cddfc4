/* Ranks on other machines: a command there, over ssh or what takes its place, starts heturun
 * --hold, which starts the rank and ends it when nobody holds the other end of its standard input
 * any more. */
#ifndef HETURUN_REMOTE_H
#define HETURUN_REMOTE_H

/* The words that start a program on a host in the folder and with the environment of this process,
 * as far as it has HETU_, OMP_ and what finds programs and libraries; `shell` is a command of words
 * that blanks part, to which the host and the command are added. */
char **remote_words(const char *shell, const char *host, char **words);

/* Removes the folders PATTERN on a host. */
void remote_remove(const char *shell, const char *host, const char *pattern);

/* heturun --hold: runs the program until it ends or the standard input does, each byte of which is
 * a signal for it; its exit status, or 128 and the signal. */
int remote_hold(char **words);

#endif

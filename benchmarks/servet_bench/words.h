/* Lists of words: argument vectors and environments under construction. Memory that is not there
 * ends the command. */
#ifndef SERVET_BENCH_WORDS_H
#define SERVET_BENCH_WORDS_H

#include <stddef.h>

struct words {
    char **list; /* ended by NULL */
    size_t count;
};

void words_add(struct words *words, const char *format, ...) __attribute__((format(printf, 2, 3)));
void words_add_all(struct words *words, char *const *list);
void words_free(struct words *words);
/* All words with blanks between, as a new string. */
char *words_text(const struct words *words);

#endif

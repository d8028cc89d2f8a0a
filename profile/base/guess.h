/* The name that a misspelt word may have meant: of options, of their values, of environment
 * variables. A header alone, because the shim and the commands share no library for it. */
#pragma once

#include <stddef.h>
#include <string.h>

/* Longer names are not compared. */
#define PROFILE_GUESS_LENGTH 40u
/* Twice a letter too many, too few or another one: --memprior, --thraeds. With more of them --html
 * would be near --hwloc. */
#define PROFILE_GUESS_ERRORS 2u

struct profile_guess {
    const char *word;
    size_t length;    /* of `word`, which may go on */
    const char *name; /* the nearest one so far; NULL: none is near */
    unsigned apart;   /* letters between them */
};

/* So many letters have to be put in, taken out or changed (Levenshtein). */
static inline unsigned profile_letters_apart(const char *a, size_t length, const char *b)
{
    unsigned row[PROFILE_GUESS_LENGTH + 1];
    size_t count = strlen(b);
    for (size_t k = 0; k <= count; k++) {
        row[k] = (unsigned)k;
    }
    for (size_t i = 0; i < length; i++) {
        unsigned diagonal = row[0];
        row[0] = (unsigned)i + 1;
        for (size_t k = 0; k < count; k++) {
            unsigned changed = diagonal + (a[i] != b[k]);
            unsigned other = (row[k] < row[k + 1] ? row[k] : row[k + 1]) + 1;
            diagonal = row[k + 1];
            row[k + 1] = changed < other ? changed : other;
        }
    }
    return row[count];
}

/* Keeps `name` if it is near the word and nearer than those before. */
static inline void profile_guess(struct profile_guess *guess, const char *name)
{
    if (strlen(name) > PROFILE_GUESS_LENGTH) {
        return;
    }
    unsigned apart = profile_letters_apart(guess->word, guess->length, name);
    if (apart <= PROFILE_GUESS_ERRORS && 2 * apart < guess->length &&
        (!guess->name || apart < guess->apart)) {
        guess->apart = apart;
        guess->name = name;
    }
}

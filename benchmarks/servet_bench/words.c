#include "benchmarks/servet_bench/words.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profile/base/cli.h"

static void append(struct words *words, char *word)
{
    char **list = realloc(words->list, (words->count + 2) * sizeof *list);
    if (!list || !word) {
        cli_fail("out of memory");
    }
    list[words->count++] = word;
    list[words->count] = NULL;
    words->list = list;
}

void words_add(struct words *words, const char *format, ...)
{
    char *word = NULL;
    va_list arguments;
    va_start(arguments, format);
    if (vasprintf(&word, format, arguments) < 0) {
        word = NULL;
    }
    va_end(arguments);
    append(words, word);
}

void words_add_all(struct words *words, char *const *list)
{
    for (; *list; list++) {
        append(words, strdup(*list));
    }
}

void words_free(struct words *words)
{
    for (size_t i = 0; i < words->count; i++) {
        free(words->list[i]);
    }
    free(words->list);
    *words = (struct words){0};
}

char *words_text(const struct words *words)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    if (!out) {
        cli_fail("out of memory");
    }
    for (size_t i = 0; i < words->count; i++) {
        fprintf(out, "%s%s", i ? " " : "", words->list[i]);
    }
    fclose(out);
    return text;
}

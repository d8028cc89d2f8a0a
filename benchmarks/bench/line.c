/* Lines of the tuner, read word by word: nothing is known of a launcher but its name. */
#include "benchmarks/bench/line.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "benchmarks/bench/tools.h"
#include "profile/base/cli.h"

#define THREADS_VARIABLE "OMP_NUM_THREADS"

static void refuse_launcher(const char *word)
{
    static const char *const launchers[] = {"mpirun", "mpiexec", "srun"};
    for (size_t i = 0; i < sizeof launchers / sizeof *launchers; i++) {
        if (strncmp(basename(word), launchers[i], strlen(launchers[i])) == 0) {
            cli_usage("%s: expected " PIN_TUNED_RANKS " in the place of its number of ranks", word);
        }
    }
}

/* It would place what --tune means to leave to the system. */
static void refuse_placing(const struct bench_line *line)
{
    for (size_t i = 0; i <= line->program; i++) {
        const char *word = line->words[i];
        if (strcmp(basename(word), "servet-pin") == 0 || strstr(word, "libservet_pin")) {
            cli_usage("--tune: %s: expected the line without it, --tune puts servet-pin in front "
                      "of the program",
                      word);
        }
    }
}

/* The first word behind the ranks that can be run and is no option of the launcher; without ranks
 * the first word. env(1) is not the program. */
static size_t find_program(const struct bench_line *line, size_t at)
{
    char **words = line->words;
    bool further = line->ranks;
    const char *first = words[at];
    for (; words[at]; at++) {
        char *found =
            words[at][0] == '-' || strchr(words[at], '=') ? NULL : bench_tools_find(words[at]);
        const bool is_env = found && strcmp(basename(words[at]), "env") == 0;
        free(found);
        if (found && !is_env) {
            return at;
        }
        further = further || is_env;
        if (!further) {
            break;
        }
    }
    cli_usage("%s: expected a program that can be run%s", first ? first : words[0],
              line->ranks ? " behind " PIN_TUNED_RANKS : "");
}

/* As env(1), mpirun -x and srun --export take it, or in two words as hydra's -genv does. */
static uint32_t fixed_threads(const struct bench_line *line)
{
    const size_t length = sizeof THREADS_VARIABLE - 1;
    uint32_t threads = 0;
    for (size_t i = 0; i < line->program; i++) {
        const char *value = strstr(line->words[i], THREADS_VARIABLE);
        value = !value                  ? ""
                : value[length] == '='  ? value + length + 1
                : i + 1 < line->program ? line->words[i + 1]
                                        : "";
        threads = isdigit((unsigned char)*value) ? (uint32_t)strtoul(value, NULL, 10) : threads;
    }
    return threads;
}

void bench_line_read(char **words, struct bench_line *out)
{
    *out = (struct bench_line){.words = words};
    size_t at = 0;
    while (words[at] && !strstr(words[at], PIN_TUNED_RANKS)) {
        at++;
    }
    out->ranks = words[at];
    out->program = find_program(out, out->ranks ? at + 1 : 0);
    refuse_placing(out);
    if (!out->ranks) {
        refuse_launcher(words[out->program]);
    }
    out->threads = fixed_threads(out);
}

/* In front of the program: its numbers, and who places it. */
static void add_placing(const struct bench_line *line, const struct pin_tuned *with,
                        const char *servet_pin, struct words *out)
{
    static const char *const options[] = {
        [PIN_TUNED_MEMORY] = "--mem-prior", [PIN_TUNED_COMMUNICATION] = "--comm-prior"};
    if (servet_pin && !line->threads) {
        bench_words_add(out, "env");
        bench_words_add(out, THREADS_VARIABLE "=%u", with->threads);
    }
    if (servet_pin && with->placement == PIN_TUNED_DEFAULT) {
        return;
    }
    bench_words_add(out, "%s", servet_pin ? servet_pin : "servet-pin");
    bench_words_add(out, "%s", servet_pin ? options[with->placement] : "--tuned");
    if (servet_pin && with->memory) {
        bench_words_add(out, "--membind=%s", pin_tuned_memories[with->memory]);
    }
    bench_words_add(out, "--");
}

void bench_line_build(const struct bench_line *line, const struct pin_tuned *with,
                      const char *servet_pin, struct words *out)
{
    for (size_t i = 0; line->words[i]; i++) {
        if (i == line->program) {
            add_placing(line, with, servet_pin, out);
        }
        char *filled = pin_tuned_fill(line->words[i], with);
        if (!filled) {
            cli_fail("out of memory");
        }
        bench_words_add(out, "%s", servet_pin || i < line->program ? filled : line->words[i]);
        free(filled);
    }
}

char *bench_line_text(const struct bench_line *line, const struct pin_tuned *with,
                      const char *servet_pin)
{
    struct words words = {0};
    bench_line_build(line, with, servet_pin, &words);
    char *text = bench_words_text(&words);
    bench_words_free(&words);
    return text;
}

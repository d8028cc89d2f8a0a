/* The files of servet-bench --tune. */
#include "preload/command/tuned.h"

#include <errno.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "profile/base/file.h"
#include "profile/base/hash.h"
#include "profile/model.h"
#include "profile/text/record.h"

const char *const pin_tuned_names[PIN_TUNED_PLACEMENTS + 1] = {"memory", "communication",
                                                               "default"};

const char *const pin_tuned_memories[PIN_TUNED_MEMORIES + 1] = {"none", "fast", "weighted"};

/* -- where -- */

int pin_tuned_path(const char *profile, const char *program, char *const *arguments,
                   char out[PATH_MAX])
{
    static const char ending[] = ".json";
    const char *slash = strrchr(program, '/');
    size_t length = strlen(profile), end = sizeof ending - 1;
    uint64_t hash = PROFILE_HASH_BEGIN;
    for (; *arguments; arguments++) { /* with the 0, so that "a b" is not "a", "b" */
        hash = profile_hash_bytes(hash, *arguments, strlen(*arguments) + 1);
    }
    length -= length > end && strcmp(profile + length - end, ending) == 0 ? end : 0;
    int size = snprintf(out, PATH_MAX, "%.*s.tuned/%s-%016llx%s", (int)length, profile,
                        slash ? slash + 1 : program, (unsigned long long)hash, ending);
    return size < PATH_MAX ? 0 : -ENAMETOOLONG;
}

/* The user's own entry comes before that of the machine. */
static int find_entry(const char *program, char *const *arguments, char path[PATH_MAX])
{
    char profile[PATH_MAX];
    struct servet_error ignored;
    for (int place = 0; place < 2; place++) {
        int rc = place ? profile_find(profile, sizeof profile)
                       : profile_default_path(profile, sizeof profile, &ignored);
        if (rc == 0 && pin_tuned_path(profile, program, arguments, path) == 0 &&
            access(path, F_OK) == 0) {
            return 0;
        }
    }
    return -ENOENT;
}

/* -- what -- */

static bool read_word(const char *word, const char *const *words, unsigned *out)
{
    for (*out = 0; words[*out]; ++*out) {
        if (word && strcmp(word, words[*out]) == 0) {
            return true;
        }
    }
    return false;
}

/* Entries of nodes with one tier have no word of memory. */
static bool read_tuned_row(const json_t *row, struct pin_tuned *out)
{
    const json_t *memory = json_object_get(row, PIN_TUNED_MEMBIND);
    unsigned at, policy = PIN_TUNED_FIRST_TOUCH;
    const char *placement = json_string_value(json_object_get(row, "placement"));
    json_int_t ranks = json_integer_value(json_object_get(row, "ranks")),
               threads = json_integer_value(json_object_get(row, "threads"));
    if (ranks < 0 || ranks > UINT32_MAX || threads < 1 || threads > UINT32_MAX ||
        !read_word(placement, pin_tuned_names, &at) ||
        (memory && !read_word(json_string_value(memory), pin_tuned_memories, &policy))) {
        return false;
    }
    *out = (struct pin_tuned){
        .ranks = (uint32_t)ranks, .threads = (uint32_t)threads, .placement = at, .memory = policy};
    return true;
}

enum { NUMBERS = 128 };

/* Numbers of measured rows, each once: " 1, 2, 4,". */
static void add_number(char list[NUMBERS], uint32_t number)
{
    const size_t length = strlen(list);
    char word[16];
    snprintf(word, sizeof word, " %u,", number);
    if (!strstr(list, word)) {
        snprintf(list + length, NUMBERS - length, "%s", word);
    }
}

/* `ranks` and `threads`: of the rows with other ranks, and of those with as many as are given. */
static int say_what_differs(const char *path, const char *ranks, const char *threads,
                            const struct pin_tuned *given, struct servet_error *error)
{
    const char *list = *threads ? threads : ranks;
    const int length = (int)strlen(list) - 1; /* without the last comma */
    if (length < 0) {
        return profile_error(error, -ENOENT, "%s: no candidate has a figure", path);
    }
    if (*threads) {
        return profile_error(error, -ENOENT, "%s: tuned with%.*s threads; OMP_NUM_THREADS is %u",
                             path, length, list, given->threads);
    }
    return profile_error(error, -ENOENT, "%s: tuned with%.*s ranks (0: no launcher); here are %u",
                         path, length, list, given->ranks);
}

static int find_row(const json_t *rows, const char *path, struct pin_tuned *given,
                    struct servet_error *error)
{
    char ranks[NUMBERS] = "", threads[NUMBERS] = "";
    size_t i;
    const json_t *row;
    json_array_foreach(rows, i, row)
    {
        struct pin_tuned one;
        if (!read_tuned_row(row, &one)) {
            return profile_error(error, -EINVAL, "%s: %s[%zu]: expected ranks, threads, placement",
                                 path, PIN_TUNED_ROWS, i);
        }
        if (!json_is_number(json_object_get(row, "median"))) {
            continue;
        }
        if (one.ranks == given->ranks && (!given->threads || one.threads == given->threads)) {
            *given = one;
            return 0;
        }
        if (one.ranks == given->ranks) {
            add_number(threads, one.threads);
        } else {
            add_number(ranks, one.ranks);
        }
    }
    return say_what_differs(path, ranks, threads, given, error);
}

static json_int_t recorded_pus(const json_t *root)
{
    return json_integer_value(json_object_get(json_object_get(root, PIN_TUNED_MACHINE), "pus"));
}

static bool is_of_machine(const json_t *root, const char *signature)
{
    const char *there = json_string_value(json_object_get(root, PIN_TUNED_SIGNATURE));
    return there && strcmp(there, signature) == 0;
}

int pin_tuned_read_search(const char *path, const char *signature, struct pin_tuned_search *out)
{
    json_error_t ignored;
    json_t *root = json_load_file(path, 0, &ignored);
    const json_t *first = json_array_get(json_object_get(root, PIN_TUNED_ROWS), 0);
    const bool found = first && is_of_machine(root, signature);
    if (found) {
        *out = (struct pin_tuned_search){
            .rounds = (uint32_t)json_integer_value(json_object_get(first, PIN_TUNED_ROUNDS)),
            .pus = (uint32_t)recorded_pus(root)};
    }
    json_decref(root);
    return found ? 0 : -ENOENT;
}

static int read_rows(const json_t *root, const char *path, struct pin_tuned *given,
                     struct servet_error *error)
{
    char here[PROFILE_SIGNATURE_SIZE] = "";
    const json_t *rows = json_object_get(root, PIN_TUNED_ROWS);
    if (!json_is_string(json_object_get(root, PIN_TUNED_SIGNATURE)) || !json_is_array(rows)) {
        return profile_error(error, -EINVAL, "%s: expected a file of servet-bench --tune", path);
    }
    if (profile_signature("", here) < 0 || !is_of_machine(root, here)) {
        return profile_error(error, -ENOENT, "%s: tuned on another machine", path);
    }
    const json_int_t pus = recorded_pus(root);
    if (given->pus && pus != given->pus) {
        return profile_error(error, -ENOENT, "%s: tuned on %lld PUs, this process may use %u", path,
                             (long long)pus, given->pus);
    }
    return find_row(rows, path, given, error);
}

int pin_tuned_find(const char *program, char *const *arguments, struct pin_tuned *out,
                   char path[PATH_MAX], struct servet_error *error)
{
    if (find_entry(program, arguments, path) < 0) {
        return profile_error(error, -ENOENT, "%s with these arguments was not tuned here", program);
    }
    json_error_t why;
    json_t *root = json_load_file(path, 0, &why);
    if (!root) {
        return profile_error(error, -EINVAL, "%s: %s", path, why.text);
    }
    int rc = read_rows(root, path, out, error);
    json_decref(root);
    return rc;
}

/* -- words -- */

bool pin_tuned_is_open(const char *word)
{
    return strstr(word, PIN_TUNED_RANKS) || strstr(word, PIN_TUNED_THREADS);
}

char *pin_tuned_fill(const char *word, const struct pin_tuned *with)
{
    char *text = NULL;
    size_t size;
    FILE *out = profile_stream_open(&text, &size);
    if (out) {
        profile_record_say(out, word,
                           PROFILE_FACTS(PROFILE_NUMBER("ranks", with->ranks),
                                         PROFILE_NUMBER("threads", with->threads)));
    }
    return out && fclose(out) == 0 ? text : NULL;
}

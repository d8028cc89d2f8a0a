/* What was measured so far, kept so that an interrupted run can go on. A probe's questions
 * follow from its seed and from the answers it got: given the same answers it asks the same
 * questions, so the answers are all that is kept. */
#include "probes/checkpoint.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

struct machine_journal {
    FILE *file;
    char *path;
    bool replaying;
    size_t taken;
};

static const char magic[] = "servet-probe journal 1: ";

static int refuse(struct machine_journal *journal, struct servet_error *error, int code,
                  const char *reason)
{
    int rc = profile_error(error, code, "%s: %s", journal->path, reason);
    probe_checkpoint_close(journal, false);
    return rc;
}

int probe_checkpoint_open(const char *path, const char *run, struct machine_journal **out,
                          struct servet_error *error)
{
    char *line = NULL;
    size_t size = 0;
    struct machine_journal *journal = calloc(1, sizeof *journal);
    if (!journal || !(journal->path = strdup(path))) {
        free(journal);
        return profile_error(error, -ENOMEM, "%s: %s", path, strerror(ENOMEM));
    }
    journal->file = fopen(path, "a+e");
    if (!journal->file) {
        return refuse(journal, error, -errno, strerror(errno));
    }
    /* Two runs would mix their entries. A file system without locks is used without. */
    if (flock(fileno(journal->file), LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK) {
        return refuse(journal, error, -EBUSY, "another run is going on with it");
    }
    rewind(journal->file);
    ssize_t length = getline(&line, &size, journal->file);
    bool torn = length <= 0 || line[length - 1] != '\n';
    bool same = !torn && strncmp(line, magic, strlen(magic)) == 0 &&
                strncmp(line + strlen(magic), run, strlen(run)) == 0 &&
                line[strlen(magic) + strlen(run)] == '\n';
    bool ours =
        length <= 0 ||
        strncmp(line, magic, (size_t)length < strlen(magic) ? (size_t)length : strlen(magic)) == 0;
    free(line);
    if (!ours || (!torn && !same)) {
        return refuse(journal, error, -ESTALE,
                      "expected the state of a run with the same machine, kernel, page settings, "
                      "seed and options; "
                      "remove it to start anew");
    }
    journal->replaying = same;
    if (torn &&
        (ftruncate(fileno(journal->file), 0) < 0 ||
         fprintf(journal->file, "%s%s\n", magic, run) < 0 || fflush(journal->file) == EOF)) {
        return refuse(journal, error, -EIO, "cannot write");
    }
    *out = journal;
    return 0;
}

void probe_checkpoint_close(struct machine_journal *journal, bool finished)
{
    if (!journal) {
        return;
    }
    if (journal->file) {
        fclose(journal->file);
    }
    if (finished) {
        unlink(journal->path);
    }
    free(journal->path);
    free(journal);
}

uint64_t probe_checkpoint_key(const char *machine, const char *kind, const uint64_t *words,
                              size_t count)
{
    const uint64_t prime = UINT64_C(0x100000001b3); /* FNV-1a, 64 bits */
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (const char *c = machine; *c; c++) {
        hash = (hash ^ (uint64_t)(unsigned char)*c) * prime;
    }
    for (const char *c = kind; *c; c++) {
        hash = (hash ^ (uint64_t)(unsigned char)*c) * prime;
    }
    for (size_t i = 0; i < 8 * count; i++) {
        hash = (hash ^ ((words[i / 8] >> (8 * (i % 8))) & 0xff)) * prime;
    }
    return hash;
}

/* An entry: KEY COUNT VALUE… in hexadecimal, so that the values come back to the last bit. */
static bool parse(const char *line, uint64_t key, double *values, size_t count)
{
    char *end;
    if (strtoull(line, &end, 16) != key || strtoull(end, &end, 10) != count) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        const char *start = end;
        values[i] = strtod(start, &end);
        if (end == start) {
            return false;
        }
    }
    return strcmp(end, "\n") == 0;
}

bool probe_checkpoint_take(struct machine_journal *journal, uint64_t key, double *values,
                           size_t count)
{
    char *line = NULL;
    size_t size = 0;
    if (!journal || !journal->replaying) {
        return false;
    }
    double *found = malloc(count * sizeof *found);
    off_t start = ftello(journal->file);
    bool ok = found && getline(&line, &size, journal->file) > 0 && parse(line, key, found, count);
    if (ok) {
        memcpy(values, found, count * sizeof *values);
        journal->taken++;
    } else { /* what follows is of no use any more */
        journal->replaying = false;
        clearerr(journal->file);
        if (fseeko(journal->file, start, SEEK_SET) < 0 ||
            ftruncate(fileno(journal->file), start) < 0) {
            fclose(journal->file);
            journal->file = NULL;
        }
    }
    free(line);
    free(found);
    return ok;
}

void probe_checkpoint_put(struct machine_journal *journal, uint64_t key, const double *values,
                          size_t count)
{
    if (!journal || !journal->file) {
        return;
    }
    fprintf(journal->file, "%" PRIx64 " %zu", key, count);
    for (size_t i = 0; i < count; i++) {
        fprintf(journal->file, " %a", values[i]);
    }
    fputc('\n', journal->file);
    if (fflush(journal->file) == EOF) {
        fclose(journal->file);
        journal->file = NULL;
    }
}

size_t probe_checkpoint_taken(const struct machine_journal *journal)
{
    return journal ? journal->taken : 0;
}

/* The bytes that ranks send one another, read from Matrix Market or plain rows. Both directions of
 * a pair are added up, for a message costs its time at both ends. */
#include "mapper/traffic/traffic.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profile/scope.h"

struct reading {
    const char *path;
    FILE *file;
    struct servet_error *error;
    char *line;
    size_t line_size, line_number;
    int code; /* why no more lines came: an errno, 0: at the end */
    struct map_entry *entries;
    size_t count, room;
    uint32_t ranks;
};

static int compare_entries(const void *a, const void *b)
{
    const struct map_entry *x = a, *y = b;
    if (x->from != y->from) {
        return x->from < y->from ? -1 : 1;
    }
    return x->to < y->to ? -1 : x->to > y->to;
}

/* Every entry for both ends, equal pairs added up, the diagonal and zeros left out. */
static size_t both_ways(const struct map_entry *entries, size_t count, struct map_entry *both)
{
    size_t used = 0, kept = 0;
    for (size_t i = 0; i < count; i++) {
        if (entries[i].from != entries[i].to && entries[i].bytes > 0) {
            both[used++] = entries[i];
            both[used++] = (struct map_entry){entries[i].to, entries[i].from, entries[i].bytes};
        }
    }
    qsort(both, used, sizeof *both, compare_entries);
    for (size_t i = 0; i < used; i++) {
        if (kept && compare_entries(&both[kept - 1], &both[i]) == 0) {
            both[kept - 1].bytes += both[i].bytes;
        } else {
            both[kept++] = both[i];
        }
    }
    return kept;
}

int map_matrix_make(uint32_t ranks, const struct map_entry *entries, size_t count,
                    struct map_matrix *out)
{
    struct map_matrix matrix = {.ranks = ranks,
                                .start = calloc((size_t)ranks + 1, sizeof *matrix.start),
                                .entries = calloc(2 * count + 1, sizeof *matrix.entries)};
    if (!matrix.start || !matrix.entries) {
        map_matrix_free(&matrix);
        return -ENOMEM;
    }
    size_t kept = both_ways(entries, count, matrix.entries);
    for (size_t i = 0; i < kept; i++) {
        matrix.start[matrix.entries[i].from + 1]++;
    }
    for (uint32_t r = 0; r < ranks; r++) {
        matrix.start[r + 1] += matrix.start[r];
    }
    *out = matrix;
    return 0;
}

void map_matrix_free(struct map_matrix *matrix)
{
    free(matrix->start);
    free(matrix->entries);
    *matrix = (struct map_matrix){0};
}

/* -- reading -- */

static int refuse(const struct reading *r, const char *expected)
{
    return profile_error(r->error, -EINVAL, "%s:%zu: expected %s", r->path, r->line_number,
                         expected);
}

/* The next line that is more than a comment; false at the end. */
static bool next_line(struct reading *r, char comment)
{
    while (getline(&r->line, &r->line_size, r->file) >= 0) {
        r->line_number++;
        const char *first = r->line + strspn(r->line, " \t\r\n");
        if (*first && *first != comment) {
            return true;
        }
    }
    r->code = feof(r->file) ? 0 : errno;
    return false;
}

static int add_entry(struct reading *r, uint32_t from, uint32_t to, double bytes)
{
    if (!isfinite(bytes) || bytes < 0) {
        return refuse(r, "a number of bytes, not negative");
    }
    if (r->count == r->room) {
        size_t room = r->room ? 2 * r->room : 1024;
        struct map_entry *more = reallocarray(r->entries, room, sizeof *more);
        if (!more) {
            return -ENOMEM;
        }
        r->entries = more;
        r->room = room;
    }
    r->entries[r->count++] = (struct map_entry){from, to, bytes};
    return 0;
}

static int read_plain_row(struct reading *r, uint32_t row)
{
    char *at = r->line, *end;
    uint32_t column = 0;
    for (;; at = end) {
        at += strspn(at, " \t\r\n,");
        if (!*at || *at == '#') {
            break;
        }
        double bytes = strtod(at, &end);
        if (end == at || (*end && !strchr(" \t\r\n,#", *end))) {
            return refuse(r, "numbers separated by blanks");
        }
        if (row && column >= r->ranks) {
            return refuse(r, "as many numbers in every row as in the first");
        }
        TRY(column < MAP_MATRIX_MOST_DENSE_RANKS
                ? add_entry(r, row, column++, bytes)
                : refuse(r, "at most 8192 ranks; Matrix Market takes more"));
    }
    if (row == 0) {
        r->ranks = column;
    }
    return column == r->ranks ? 0 : refuse(r, "as many numbers in every row as in the first");
}

static int read_plain(struct reading *r)
{
    uint32_t rows = 0;
    do {
        if (rows && rows >= r->ranks) {
            return refuse(r, "as many rows as columns");
        }
        TRY(read_plain_row(r, rows++));
    } while (next_line(r, '#'));
    return rows == r->ranks ? 0 : refuse(r, "as many rows as columns");
}

static int read_market(struct reading *r)
{
    char format[32], field[32], symmetry[32];
    if (sscanf(r->line, "%%%%MatrixMarket matrix %31s %31s %31s", format, field, symmetry) != 3 ||
        strcmp(format, "coordinate") != 0 ||
        (strcmp(field, "real") != 0 && strcmp(field, "integer") != 0) ||
        (strcmp(symmetry, "general") != 0 && strcmp(symmetry, "symmetric") != 0)) {
        return refuse(r, "'%%MatrixMarket matrix coordinate real|integer general|symmetric'");
    }
    unsigned long rows, columns, entries, row, column;
    double bytes;
    if (!next_line(r, '%') || sscanf(r->line, "%lu %lu %lu", &rows, &columns, &entries) != 3 ||
        rows != columns || rows < 1 || rows > MAP_MATRIX_MOST_RANKS) {
        return refuse(r, "'ranks ranks entries', square, of at most 1000000 ranks");
    }
    r->ranks = (uint32_t)rows;
    for (unsigned long i = 0; i < entries; i++) {
        if (!next_line(r, '%')) {
            return refuse(r, "more entries: the file ends early");
        }
        if (sscanf(r->line, "%lu %lu %lf", &row, &column, &bytes) != 3 || row < 1 || row > rows ||
            column < 1 || column > rows) {
            return refuse(r, "'row column bytes', row and column from 1 to the number of ranks");
        }
        TRY(add_entry(r, (uint32_t)row - 1, (uint32_t)column - 1, bytes));
    }
    return next_line(r, '%') ? refuse(r, "no more entries than the size line says") : 0;
}

static int read_any(struct reading *r)
{
    if (!next_line(r, '#')) {
        return profile_error(r->error, -EINVAL,
                             "%s: expected a matrix of bytes, one row per rank, or Matrix Market",
                             r->path);
    }
    return r->line[0] == '%' ? read_market(r) : read_plain(r);
}

int map_matrix_read(const char *path, struct map_matrix *out, struct servet_error *error)
{
    struct reading reading = {.path = path, .error = error, .file = fopen(path, "re")};
    if (!reading.file) {
        int code = -errno;
        return profile_error(error, code, "%s: %s", path, strerrordesc_np(-code));
    }
    int rc = read_any(&reading);
    if (reading.code) { /* then all else that is wrong comes from the end that is missing */
        rc = profile_error(error, -reading.code, "%s: %s", path, strerrordesc_np(reading.code));
    } else if (rc == 0) {
        rc = map_matrix_make(reading.ranks, reading.entries, reading.count, out);
    }
    fclose(reading.file);
    free(reading.line);
    free(reading.entries);
    return map_out_of_memory(rc, error);
}

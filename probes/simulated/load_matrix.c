/* One-way times between all PUs, out of a CSV file as people publish them: a square of numbers, a
 * row and a column for each PU in ascending order of OS index, nothing on the diagonal. Real
 * machines are not layers with one time each; a matrix that somebody measured is what a probe of
 * layers has to cope with. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "probes/simulated/simulated.h"

/* A relative name is meant from the description's folder. To be freed; NULL: no memory. */
static char *beside(const char *description, const char *name)
{
    const char *slash = strrchr(description, '/');
    size_t folder = *name == '/' || !slash ? 0 : (size_t)(slash + 1 - description);
    char *path = malloc(folder + strlen(name) + 1);
    if (path) {
        memcpy(path, description, folder);
        memcpy(path + folder, name, strlen(name) + 1);
    }
    return path;
}

/* Cells of one line; what stands on the diagonal is not looked at. */
static void read_row(struct sim_reader *reader, char *line, size_t row, double unit_s,
                     struct sim *sim)
{
    char *rest = line;
    for (size_t column = 0; column < sim->pu_count && !reader->failed; column++) {
        const char *cell = strsep(&rest, ",");
        char *end = NULL;
        double value = cell ? strtod(cell, &end) : 0;
        sim->matrix.seconds[row * sim->pu_count + column] = value * unit_s;
        if (row != column && (!cell || end == cell || !isfinite(value) || value <= 0)) {
            probe_sim_refuse(reader,
                             "exchange_matrix: row %zu, column %zu: expected a number above 0",
                             row + 1, column + 1);
        }
    }
    if (rest && !reader->failed) {
        probe_sim_refuse(reader, "exchange_matrix: row %zu: expected %zu columns", row + 1,
                         sim->pu_count);
    }
}

static void read_rows(struct sim_reader *reader, FILE *file, double unit_s, struct sim *sim)
{
    char *line = NULL;
    size_t size = 0, rows = 0;
    ssize_t length;
    while (!reader->failed && (length = getline(&line, &size, file)) > 0) {
        line[strcspn(line, "\r\n")] = '\0';
        if (*line == '\0' && sim->pu_count > 1) {
            continue;
        }
        if (rows == sim->pu_count) {
            rows++;
            break;
        }
        read_row(reader, line, rows++, unit_s, sim);
    }
    free(line);
    if (!reader->failed && rows != sim->pu_count) {
        probe_sim_refuse(reader, "exchange_matrix: expected %zu rows, one for each PU",
                         sim->pu_count);
    }
}

void probe_sim_load_matrix(struct sim_reader *reader, struct sim *sim)
{
    const char *name = sim->matrix.file;
    if (!name || reader->failed) {
        return;
    }
    char *path = beside(reader->path, name);
    FILE *file = path ? fopen(path, "re") : NULL;
    sim->matrix.seconds = calloc(sim->pu_count * sim->pu_count, sizeof *sim->matrix.seconds);
    if (!path || !sim->matrix.seconds) {
        probe_sim_no_memory(reader, "exchange_matrix.file");
    } else if (!file) {
        probe_sim_refuse(reader, "exchange_matrix.file: %s: %s", name, strerror(errno));
    } else {
        read_rows(reader, file, sim->matrix.seconds_per_unit, sim);
    }
    if (file) {
        fclose(file);
    }
    free(path);
}

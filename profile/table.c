#include "table.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define GAP "  "

void table_row(struct table *table)
{
    char *(*more)[TABLE_COLUMNS] = reallocarray(table->rows, table->row_count + 1, sizeof *more);
    if (!more) {
        table->failed = 1;
        return;
    }
    memset(&more[table->row_count], 0, sizeof *more);
    table->rows = more;
    table->row_count++;
    table->column = 0;
}

void table_cell(struct table *table, const char *format, ...)
{
    if (table->failed || !table->row_count || table->column == TABLE_COLUMNS) {
        return;
    }
    va_list args;
    va_start(args, format);
    char **cell = &table->rows[table->row_count - 1][table->column++];
    if (vasprintf(cell, format, args) < 0) {
        *cell = NULL;
        table->failed = 1;
    }
    va_end(args);
}

static int width(const struct table *table, size_t column)
{
    size_t most = 0;
    for (size_t i = 0; i < table->row_count; i++) {
        size_t length = table->rows[i][column] ? strlen(table->rows[i][column]) : 0;
        most = length > most ? length : most;
    }
    return (int)most;
}

/* Without spaces at the end of a line. */
static void print_row(const struct table *table, size_t row, const int *widths, FILE *stream, int indent)
{
    size_t last = 0;
    for (size_t i = 0; i < TABLE_COLUMNS; i++) {
        last = table->rows[row][i] && *table->rows[row][i] ? i : last;
    }
    fprintf(stream, "%*s", indent, "");
    for (size_t i = 0; i <= last; i++) {
        const char *cell = table->rows[row][i] ? table->rows[row][i] : "";
        fprintf(stream, "%s%-*s", i ? GAP : "", i == last ? 0 : widths[i], cell);
    }
    fputc('\n', stream);
}

int table_print(struct table *table, FILE *stream, int indent)
{
    int widths[TABLE_COLUMNS], rc = table->failed ? -ENOMEM : 0;
    for (size_t i = 0; i < TABLE_COLUMNS; i++) {
        widths[i] = width(table, i);
    }
    for (size_t row = 0; row < table->row_count; row++) {
        if (rc == 0) {
            print_row(table, row, widths, stream, indent);
        }
        for (size_t i = 0; i < TABLE_COLUMNS; i++) {
            free(table->rows[row][i]);
        }
    }
    free(table->rows);
    *table = (struct table){0};
    return rc;
}

/* Columns of text, each as wide as its widest cell. */
#ifndef SERVET_PROFILE_TABLE_H
#define SERVET_PROFILE_TABLE_H

#include <stddef.h>
#include <stdio.h>

#define TABLE_COLUMNS 8

struct table {
    char *(*rows)[TABLE_COLUMNS];
    size_t row_count;
    size_t column; /* of the next cell */
    int failed;    /* memory was short: nothing is printed */
};

/* Starts a row; adds a cell to the row that was started. */
void table_row(struct table *table);
void table_cell(struct table *table, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Prints the rows, indented, and empties the table. 0 or -ENOMEM. */
int table_print(struct table *table, FILE *stream, int indent);

#endif

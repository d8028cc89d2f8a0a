#include "explain.h"

#include <stdlib.h>

/* Width of a column: "-123.45*" and a space. */
#define COLUMN 7

/* A weight as the paper writes it where it is whole, else with two digits (it is exact only as a fraction). */
static void print_weight(FILE *out, int64_t value, int64_t denominator, bool chosen)
{
    char text[32];
    if (value % denominator == 0) {
        snprintf(text, sizeof text, "%ld%s", (long)(value / denominator), chosen ? "*" : "");
    } else {
        snprintf(text, sizeof text, "%.2f%s", (double)value / (double)denominator, chosen ? "*" : "");
    }
    fprintf(out, "%*s", COLUMN, text);
}

static void print_line(FILE *out, const struct map_row *row, const char *name, const int64_t *values, bool mark)
{
    fprintf(out, "%-7s", name);
    for (size_t i = 0; i < row->pu_count; i++) {
        if (row->taken[i]) {
            fprintf(out, "%*s", COLUMN, "-");
        } else {
            print_weight(out, values[i], row->denominator, mark && row->pus[i] == row->chosen);
        }
    }
    fputc('\n', out);
}

static void print_row(void *context, const struct map_row *row)
{
    FILE *out = context;
    if (row->worker == 0) {
        fprintf(out, "%5s %-7s", "Iter.", "Core");
        for (size_t i = 0; i < row->pu_count; i++) {
            fprintf(out, "%*u", COLUMN, row->pus[i]);
        }
        fputc('\n', out);
    }
    bool nothing_before = true;
    for (size_t i = 0; i < row->pu_count; i++) {
        nothing_before = nothing_before && !row->taken[i] && !row->rule1[i] && !row->rule2[i] && !row->rule3[i];
    }
    fprintf(out, "%5zu ", row->worker + 1);
    if (row->worker > 0 || !nothing_before) {
        print_line(out, row, "Rule 1", row->rule1, false);
        fprintf(out, "%6s", "");
        print_line(out, row, "Rule 2", row->rule2, false);
        fprintf(out, "%6s", "");
        print_line(out, row, "Rule 3", row->rule3, false);
        fprintf(out, "%6s", "");
    }
    print_line(out, row, "Total", row->total, true);
}

int map_explain_table(FILE *out, const struct servet_profile *profile, const struct map_request *request, uint32_t *pus,
                      struct servet_error *error)
{
    struct map_trace trace = {print_row, out};
    return map_workers(profile, request, pus, &trace, error);
}

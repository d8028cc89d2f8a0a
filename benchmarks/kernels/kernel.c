/* Common to all kernels: the command line and the report. */
#include "benchmarks/kernels/kernel.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "benchmarks/kernels/par.h"

static const char classes[] = "SWAB";

size_t kernel_class_index(char problem)
{
    const char *found = strchr(classes, problem);
    return found ? (size_t)(found - classes) : 0;
}

void *kernel_memory(size_t count, size_t bytes_each)
{
    enum { LINE = 64, PAGE = 4096 };
    size_t bytes = (count * bytes_each + LINE - 1) / LINE * LINE;
    char *memory = aligned_alloc(LINE, bytes ? bytes : LINE);
    if (!memory) {
        fprintf(stderr, "%s: no %zu bytes of memory\n", kernel_name, bytes);
        exit(1);
    }
    size_t pages = (bytes + PAGE - 1) / PAGE;
#pragma omp parallel for schedule(static)
    for (size_t page = 0; page < pages; page++) {
        size_t first = page * PAGE;
        memset(memory + first, 0, bytes - first < PAGE ? bytes - first : PAGE);
    }
    return memory;
}

static int usage(const char *text)
{
    if (par_rank() == 0) {
        fprintf(stderr, "%s: expected a class S, W, A or B, got \"%s\"\n", kernel_name, text);
    }
    par_finish();
    return 2;
}

static void report(char problem, const struct kernel_result *result)
{
    printf("%-14s %c\n", "class", problem);
    printf("%-14s %s, %zu x %zu\n", "ranks, threads", par_form(), par_size(), par_threads());
    printf("%-14s %.6f s\n", "time", result->seconds);
    printf("%-14s %.3f %s\n", "rate", result->rate, result->unit);
    printf("%s: %s\n", result->verified ? "CHECK PASSED" : "CHECK FAILED", result->checked);
}

int main(int argc, char **argv)
{
    par_start(&argc, &argv);
    const char *text = argc > 1 ? argv[1] : "S";
    if (argc > 2 || strlen(text) != 1 || !strchr(classes, text[0])) {
        return usage(argc > 2 ? argv[2] : text);
    }
    if (par_rank() == 0) {
        printf("%s\n", kernel_name);
    }
    struct kernel_result result = {0};
    if (!kernel_run(text[0], &result)) {
        if (par_rank() == 0) {
            fprintf(stderr, "%s: %s, got %zu ranks\n", kernel_name, result.checked, par_size());
        }
        par_finish();
        return 2;
    }
    if (par_rank() == 0) {
        report(text[0], &result);
    }
    par_finish();
    return result.verified ? 0 : 1;
}

/* Output of every test program: one line for each thread, in one write, so that lines of several
 * ranks do not mix.
 *
 *     worker RANK THREAD PUS SUM     PUS: Cpus_allowed_list of the thread, SUM: of something it
 *                                    computed
 *     count RANK N                   what the program counts as its processors
 *     place RANK THREAD PLACE        what OpenMP calls the place of the thread, -1: none
 *     mask RANK TID PUS              of every thread of the process, helpers too
 */
#pragma once

#include <dirent.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static inline void report_allowed(const char *path, char *out, size_t size)
{
    char line[4096];
    FILE *file = fopen(path, "r");
    snprintf(out, size, "?");
    while (file && fgets(line, sizeof line, file)) {
        if (strncmp(line, "Cpus_allowed_list:", 18) != 0) {
            continue;
        }
        char *text = line + 18 + strspn(line + 18, " \t");
        text[strcspn(text, "\n")] = '\0';
        snprintf(out, size, "%s", text);
    }
    if (file) {
        fclose(file);
    }
}

/* As printf() makes it, in one write. */
__attribute__((format(printf, 1, 2))) static inline void report_line(const char *format, ...)
{
    char line[1024];
    va_list values;
    va_start(values, format);
    vsnprintf(line, sizeof line, format, values);
    va_end(values);
    if (write(STDOUT_FILENO, line, strlen(line)) < 0) {
        exit(3);
    }
}

/* Something whose result must not depend on where it runs. */
static inline unsigned report_work(unsigned seed)
{
    for (int i = 0; i < 100000; i++) {
        seed = seed * 1664525u + 1013904223u;
    }
    return seed;
}

/* Takes a millisecond, so that no thread that reports is one that lives briefly. */
static inline void report_worker(int rank, int thread)
{
    char pus[256];
    unsigned sum = report_work((unsigned)(1000 * rank + thread));
    usleep(1000);
    report_allowed("/proc/thread-self/status", pus, sizeof pus);
    report_line("worker %d %d %s %u\n", rank, thread, pus, sum);
}

static inline void report_count(int rank, int count)
{
    report_line("count %d %d\n", rank, count);
}

static inline int count_threads(void)
{
    int count = 0;
    DIR *tasks = opendir("/proc/self/task");
    for (struct dirent *entry; tasks && (entry = readdir(tasks));) {
        count += entry->d_name[0] != '.';
    }
    if (tasks) {
        closedir(tasks);
    }
    return count;
}

static inline void report_masks(int rank)
{
    DIR *tasks = opendir("/proc/self/task");
    struct dirent *entry;
    while (tasks && (entry = readdir(tasks))) {
        char path[512], pus[256];
        if (entry->d_name[0] == '.') {
            continue;
        }
        snprintf(path, sizeof path, "/proc/self/task/%s/status", entry->d_name);
        report_allowed(path, pus, sizeof pus);
        report_line("mask %d %.20s %s\n", rank, entry->d_name, pus);
    }
    if (tasks) {
        closedir(tasks);
    }
}

#include "tests/mapper/command.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define MOST_WORDS 64

static char *slurp(int fd)
{
    off_t size = lseek(fd, 0, SEEK_END);
    char *text = calloc((size_t)size + 1, 1);
    ck_assert(text && pread(fd, text, (size_t)size, 0) == size);
    close(fd);
    return text;
}

static void split(char *line, char **words)
{
    size_t count = 0;
    while (*line) {
        line += strspn(line, " ");
        const char *ends = *line == '\'' ? "'" : " ";
        line += *line == '\'';
        if (*line && count < MOST_WORDS - 1) {
            words[count++] = line;
        }
        line += strcspn(line, ends);
        if (*line) {
            *line++ = '\0';
        }
    }
    words[count] = NULL;
}

struct run run_command(const char *line)
{
    char *copy = strdup(line), *words[MOST_WORDS];
    split(copy, words);
    int out = memfd_create("out", 0), err = memfd_create("err", 0);
    ck_assert(out >= 0 && err >= 0);
    pid_t child = fork();
    ck_assert(child >= 0);
    if (child == 0) {
        dup2(out, STDOUT_FILENO);
        dup2(err, STDERR_FILENO);
        execv(words[0], words);
        _exit(127);
    }
    int status;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    free(copy);
    return (struct run){WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status),
                        slurp(out), slurp(err)};
}

void run_free(struct run *run)
{
    free(run->out);
    free(run->err);
}

size_t count_lines(const char *text)
{
    size_t lines = 0;
    for (; *text; text++) {
        lines += *text == '\n';
    }
    return lines;
}

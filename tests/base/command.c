/* Programs as child processes: one fork for all tests.
 *
 * Output goes to temporary files: a pipe could fill up, and writes of several threads to a memfd
 * overwrite one another (the kernel locks the position of opened files only). */
#include "tests/base/command.h"

#include <arpa/inet.h>
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/base/scratch.h"

#define MOST_WORDS 64

static char *slurp(FILE *file)
{
    off_t size = lseek(fileno(file), 0, SEEK_END);
    char *text = kept(calloc((size_t)size + 1, 1));
    ck_assert(pread(fileno(file), text, (size_t)size, 0) == size);
    fclose(file);
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

struct run run_program(const char *const *argv, void (*prepare)(const void *context),
                       const void *context)
{
    FILE *out = tmpfile(), *err = tmpfile();
    ck_assert(out && err);
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        if (prepare) {
            prepare(context);
        }
        dup2(open("/dev/null", O_RDONLY | O_CLOEXEC), STDIN_FILENO);
        dup2(fileno(out), STDOUT_FILENO);
        dup2(fileno(err), STDERR_FILENO);
        execvp(argv[0], (char *const *)(uintptr_t)argv);
        _exit(127);
    }
    int status;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    return (struct run){WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status),
                        slurp(out), slurp(err)};
}

void in_a_process(void (*what)(void))
{
    int status;
    const pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        alarm(60);
        what();
        _exit(0);
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_msg(status == 0, "status %#x", (unsigned)status);
}

struct other start_process(int (*what)(void))
{
    struct other other = {0};
    int ready[2];
    ck_assert_int_eq(pipe2(ready, O_CLOEXEC), 0);
    other.pid = fork();
    ck_assert_int_ge(other.pid, 0);
    if (other.pid == 0) {
        int said = what();
        _exit(write(ready[1], &said, sizeof said) == sizeof said ? pause() : 1);
    }
    close(ready[1]);
    ck_assert_int_eq(read(ready[0], &other.said, sizeof other.said), sizeof other.said);
    close(ready[0]);
    return other;
}

void end_process(const struct other *other)
{
    kill(other->pid, SIGKILL);
    waitpid(other->pid, NULL, 0);
}

static struct run run_line(const char *format, va_list values)
{
    char *line, *words[MOST_WORDS];
    ck_assert_int_gt(vasprintf(&line, format, values), 0);
    split(line, words);
    struct run run = run_program((const char *const *)words, NULL, NULL);
    free(line);
    return run;
}

struct run run_command(const char *format, ...)
{
    va_list values;
    va_start(values, format);
    struct run run = run_line(format, values);
    va_end(values);
    return run;
}

void expect_refused(const char *named, const char *format, ...)
{
    va_list values;
    va_start(values, format);
    struct run run = run_line(format, values);
    va_end(values);
    ck_assert_msg(run.status == 2 && count_lines(run.err) == 1 && strstr(run.err, named) &&
                      !*run.out,
                  "expected one line with '%s' and status 2, got %d:\n%s%s", named, run.status,
                  run.err, run.out);
}

size_t count_of(const char *text, const char *word)
{
    size_t count = 0;
    for (; (text = strstr(text, word)); text++) {
        count++;
    }
    return count;
}

size_t count_lines(const char *text)
{
    return count_of(text, "\n");
}

bool is_installed(const char *tool)
{
    char command[256];
    snprintf(command, sizeof command, "command -v %s >/dev/null", tool);
    if (system(command) == 0) {
        return true;
    }
    fprintf(stderr, "not checked: %s is not installed\n", tool);
    return false;
}

bool is_built(const char *path)
{
    if (access(path, X_OK) == 0) {
        return true;
    }
    fprintf(stderr, "not checked: %s was not built\n", path);
    return false;
}

bool has_loopback(void)
{
    const struct sockaddr_in here = {.sin_family = AF_INET,
                                     .sin_port = htons(9), /* nothing is sent */
                                     .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const int end = socket(AF_INET, SOCK_DGRAM, 0);
    const int rc = connect(end, (const struct sockaddr *)&here, sizeof here);
    close(end);
    if (rc < 0) {
        fprintf(stderr, "not checked: no loopback, by which MPI starts ranks: %s\n",
                strerror(errno));
    }
    return rc == 0;
}

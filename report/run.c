#include "run.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* Files in memory instead of pipes: neither side can wait for the other. */
enum { INPUT, OUTPUT, ERRORS, FILES };

static int open_files(int fds[FILES])
{
    for (int i = 0; i < FILES; i++) {
        fds[i] = memfd_create("servet", MFD_CLOEXEC);
        if (fds[i] < 0) {
            int code = errno;
            while (i-- > 0) {
                close(fds[i]);
            }
            return -code;
        }
    }
    return 0;
}

static int fill(int fd, const char *text, size_t length)
{
    while (length) {
        ssize_t n = TEMP_FAILURE_RETRY(write(fd, text, length));
        if (n < 0) {
            return -errno;
        }
        text += n;
        length -= (size_t)n;
    }
    return lseek(fd, 0, SEEK_SET) < 0 ? -errno : 0;
}

static int contents(int fd, char **out, size_t *length)
{
    struct stat status;
    if (fstat(fd, &status) < 0) {
        return -errno;
    }
    size_t size = (size_t)status.st_size, used = 0;
    char *text = malloc(size + 1);
    while (text && used < size) {
        ssize_t n = TEMP_FAILURE_RETRY(pread(fd, text + used, size - used, (off_t)used));
        if (n <= 0) {
            free(text);
            return n < 0 ? -errno : -EIO;
        }
        used += (size_t)n;
    }
    if (!text) {
        return -ENOMEM;
    }
    text[size] = '\0';
    *out = text;
    *length = size;
    return 0;
}

static int spawn_and_wait(char *const argv[], const int fds[FILES], int *status)
{
    posix_spawn_file_actions_t actions;
    int rc = -posix_spawn_file_actions_init(&actions);
    for (int i = 0; rc == 0 && i < FILES; i++) {
        rc = -posix_spawn_file_actions_adddup2(&actions, fds[i], i);
    }
    pid_t child;
    rc = rc < 0 ? rc : -posix_spawnp(&child, argv[0], &actions, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    if (rc == 0 && TEMP_FAILURE_RETRY(waitpid(child, status, 0)) < 0) {
        rc = -errno;
    }
    return rc;
}

static int failed(const char *program, int fd, struct servet_error *error)
{
    char *text = NULL;
    size_t length = 0;
    const char *first = "it failed";
    if (contents(fd, &text, &length) == 0) {
        char *start = text + strspn(text, " \t\r\n");
        start[strcspn(start, "\r\n")] = '\0';
        first = *start ? start : first;
    }
    int rc = profile_error(error, -EIO, "%s: %s", program, first);
    free(text);
    return rc;
}

int run_filter(char *const argv[], const char *input, size_t length, char **out, size_t *out_length,
               struct servet_error *error)
{
    int fds[FILES], status = 0;
    int rc = open_files(fds);
    if (rc < 0) {
        return profile_error(error, rc, "%s: %s", argv[0], strerrordesc_np(-rc));
    }
    rc = fill(fds[INPUT], input, length);
    rc = rc < 0 ? rc : spawn_and_wait(argv, fds, &status);
    if (rc < 0) {
        rc = profile_error(error, rc, "%s: %s", argv[0], rc == -ENOENT ? "not installed" : strerrordesc_np(-rc));
    } else if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        rc = failed(argv[0], fds[ERRORS], error);
    } else {
        rc = contents(fds[OUTPUT], out, out_length);
        if (rc == 0 && *out_length == 0) {
            free(*out);
            rc = failed(argv[0], fds[ERRORS], error);
        } else if (rc < 0) {
            rc = profile_error(error, rc, "%s: %s", argv[0], strerrordesc_np(-rc));
        }
    }
    for (int i = 0; i < FILES; i++) {
        close(fds[i]);
    }
    return rc;
}

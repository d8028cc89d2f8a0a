/* Is a report only appended to a file of one's own in a folder open to all, and is no file read
 * that others could have written? */
#include <dirent.h>
#include <signal.h>
#include <sys/stat.h>

#include "preload/node/log.h"
#include "tests/base/runner.h"

#define SOMEBODY 12345 /* neither this user nor root */

static const char *folder, *target, *link_path;

static size_t entries(void)
{
    DIR *dir = opendir(folder);
    size_t count = 0;
    for (struct dirent *entry; (entry = readdir(dir));) {
        count += *entry->d_name != '.';
    }
    closedir(dir);
    return count;
}

static void setup(void)
{
    folder = scratch_folder();
    target = scratch_file("target", "old\n");
    link_path = scratch_path("link");
    ck_assert_int_eq(symlink("target", link_path), 0);
}

static void teardown(void)
{
    ck_assert_uint_eq(entries(), 2); /* nothing else is left behind */
}

TEST(a_planted_file_is_not_appended_to)
{
    ck_assert_int_eq(chmod(folder, 01777), 0);
    pin_file_append(target, "new\n", 4);
    ck_assert_str_eq(read_text(target), "old\nnew\n");
    if (geteuid() != 0 || chown(target, SOMEBODY, SOMEBODY) != 0) {
        return; /* there is no other user */
    }
    pin_file_append(target, "more\n", 5);
    ck_assert_str_eq(read_text(target), "old\nnew\n");
}

TEST(what_others_could_have_written_is_not_read)
{
    char text[64];
    ck_assert_int_eq(pin_file_get_own(target, text, sizeof text), 0);
    ck_assert_str_eq(text, "old\n");
    ck_assert_int_eq(pin_file_get_own(link_path, text, sizeof text), -ELOOP);
    ck_assert_int_eq(pin_file_get_own(target, text, 4), -EFBIG);
    ck_assert_int_eq(chmod(target, 0660), 0);
    ck_assert_int_eq(pin_file_get_own(target, text, sizeof text), -EPERM);
}

TEST(a_signal_that_waits_for_the_program_stays)
{
    sigset_t pipe_signal, pending;
    sigemptyset(&pipe_signal);
    sigaddset(&pipe_signal, SIGPIPE);
    ck_assert_int_eq(pthread_sigmask(SIG_BLOCK, &pipe_signal, NULL), 0);
    ck_assert_int_eq(raise(SIGPIPE), 0);
    pin_file_append(target, "new\n", 4);
    ck_assert_int_eq(sigpending(&pending), 0);
    ck_assert(sigismember(&pending, SIGPIPE));
}

TESTS(.setup = setup, .teardown = teardown)

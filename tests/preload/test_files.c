/* Is a file of the shim's or the tracer's only put where its user means it: not through another
 * user's link in a folder open to all, not over anything but a file, and is no file read that
 * others could have written?
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "preload/node/node.h"
#include "tests/base/runner.h"
#include "tests/base/scratch.h"

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

/* A folder like /tmp, and in it a link of another user. */
static bool plant(void)
{
    if (geteuid() != 0) {
        fprintf(stderr, "not checked: needs root to be somebody else\n");
        return false;
    }
    ck_assert_int_eq(chmod(folder, 01777), 0);
    if (lchown(link_path, SOMEBODY, SOMEBODY) != 0 && errno == EINVAL) {
        fprintf(stderr, "not checked: this user namespace has nobody else\n");
        return false;
    }
    return true;
}

TEST(a_planted_link_is_not_followed)
{
    if (!plant()) {
        return;
    }
    ck_assert_int_eq(pin_file_can_put(link_path), -EACCES);
    ck_assert_int_eq(pin_file_put(link_path, "new\n", 4), -EACCES);
    ck_assert_str_eq(read_text(target), "old\n");
    /* In a folder of one's own, links are one's own business. */
    ck_assert_int_eq(chmod(folder, 0755), 0);
    ck_assert_int_eq(pin_file_put(link_path, "new\n", 4), 0);
    ck_assert_str_eq(read_text(target), "new\n");
}

TEST(a_planted_file_is_not_appended_to)
{
    ck_assert_int_eq(chmod(folder, 01777), 0);
    pin_file_append("SERVET_REPORT", target, "new\n", 4);
    ck_assert_str_eq(read_text(target), "old\nnew\n");
    if (geteuid() != 0 || chown(target, SOMEBODY, SOMEBODY) != 0) {
        return; /* there is no other user */
    }
    pin_file_append("SERVET_REPORT", target, "more\n", 5);
    ck_assert_str_eq(read_text(target), "old\nnew\n");
}

TEST(a_link_of_ones_own_stays_a_link)
{
    struct stat info;
    ck_assert_int_eq(chmod(folder, 01777), 0);
    ck_assert_int_eq(pin_file_put(link_path, "new\n", 4), 0);
    ck_assert_str_eq(read_text(target), "new\n");
    ck_assert_int_eq(lstat(link_path, &info), 0);
    ck_assert(S_ISLNK(info.st_mode));
}

TEST(what_is_no_file_is_not_replaced)
{
    struct stat info;
    unlink(target);
    ck_assert_int_eq(mkfifo(target, 0600), 0);
    ck_assert_int_eq(pin_file_put(target, "new\n", 4), -EINVAL);
    ck_assert_int_eq(stat(target, &info), 0);
    ck_assert(S_ISFIFO(info.st_mode));
}

TEST(links_in_a_circle_end)
{
    unlink(target);
    ck_assert_int_eq(symlink("link", target), 0);
    ck_assert_int_eq(pin_file_put(link_path, "new\n", 4), -ELOOP);
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

TESTS(.setup = setup, .teardown = teardown)

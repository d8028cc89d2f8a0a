/* Is a profile found where it is looked for, and is an old one never lost by writing a new one? */
#include "tests/profile/fixture.h"
#include "tests/profile/tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "profile/base/file.h"
#include "tests/base/runner.h"

static char host[HOST_NAME_MAX + 1], found[PATH_MAX];
static struct servet_profile *nehalem;
static struct servet_error error;

/* A profile to be saved; and the default place is that of no variable. */
static void begin(void)
{
    ck_assert_int_eq(gethostname(host, sizeof host), 0);
    host[strcspn(host, ".")] = '\0';
    unsetenv("SERVET_PROFILE");
    nehalem = loaded(NEHALEM);
}

static void assert_found(const char *sysconfdir, const char *expected)
{
    ck_assert_int_eq(profile_find_under(sysconfdir, found, sizeof found), 0);
    ck_assert_str_eq(found, expected);
}

TEST(profiles_are_looked_for_in_the_documented_order)
{
    const char *root = scratch_folder(), *etc = scratch_path("etc");
    setenv("XDG_CONFIG_HOME", scratch_path("xdg"), 1);
    ck_assert_int_eq(profile_find_under(etc, found, sizeof found), -ENOENT);
    put_file("/etc/servet/profile.json", "");
    assert_found(etc, scratch_path("etc/servet/profile.json"));
    put_file(formatted("/etc/servet/%s.json", host), "");
    assert_found(etc, formatted("%s/servet/%s.json", etc, host));
    put_file(formatted("/xdg/servet/%s.json", host), "");
    assert_found(etc, formatted("%s/xdg/servet/%s.json", root, host));
    setenv("SERVET_PROFILE", "/nowhere/at/all", 1);
    assert_found(etc, "/nowhere/at/all");
    setenv("SERVET_PROFILE", "", 1);
    assert_found(etc, formatted("%s/xdg/servet/%s.json", root, host));
    ck_assert_int_eq(profile_find_under(etc, found, 4), -ENAMETOOLONG);
}

/* In a child as another user: the process of a test keeps its own. */
static int find_as(uid_t user, const char *etc)
{
    int status;
    pid_t pid = fork();
    if (pid == 0) {
        _exit(setuid(user) < 0 ? 99 : -profile_find_under(etc, found, sizeof found));
    }
    waitpid(pid, &status, 0);
    ck_assert(WIFEXITED(status));
    return WEXITSTATUS(status);
}

/* `su` and services leave $HOME what it was: a folder that they may not look into. */
TEST(what_another_user_has_and_shows_nobody_is_not_found)
{
    enum { NOBODY = 65534 };
    const char *root = scratch_folder(), *home = scratch_path("home"),
               *config = scratch_path("home/.config");
    if (geteuid() != 0) {
        return;
    }
    const char *name = formatted("/home/.config/servet/%s.json", host),
               *file = formatted("%s%s", root, name);
    put_file(name, "");
    unsetenv("XDG_CONFIG_HOME");
    setenv("HOME", home, 1);
    ck_assert_int_eq(chmod(root, 0755), 0);
    ck_assert_int_eq(find_as(NOBODY, root), 0); /* a profile for all to read */
    ck_assert_int_eq(chmod(file, 0600), 0);
    ck_assert_int_eq(find_as(NOBODY, root), ENOENT);
    ck_assert_int_eq(chmod(home, 0700), 0);
    ck_assert_int_eq(find_as(NOBODY, root), ENOENT);
    ck_assert_int_eq(find_as(0, root), 0);
    /* An unreadable profile of the user is found: an error follows. */
    ck_assert_int_eq(chmod(home, 0755), 0);
    ck_assert_int_eq(chmod(file, 0), 0);
    ck_assert_int_eq(chown(config, NOBODY, NOBODY), 0);
    ck_assert_int_eq(find_as(NOBODY, root), 0);
}

TEST(home_is_the_place_without_xdg)
{
    const char *root = scratch_folder();
    setenv("XDG_CONFIG_HOME", "not/absolute", 1);
    setenv("HOME", root, 1);
    ck_assert_int_eq(profile_default_path(found, sizeof found, &error), 0);
    ck_assert_str_eq(found, formatted("%s/.config/servet/%s.json", root, host));
    unsetenv("HOME");
    ck_assert_int_eq(profile_default_path(found, sizeof found, &error), -ENOENT);
    ck_assert_ptr_nonnull(strstr(error.text, "HOME"));
    setenv("SERVET_PROFILE", "p.json", 1);
    ck_assert_int_eq(profile_default_path(found, sizeof found, &error), 0);
    ck_assert_str_eq(found, "p.json");
}

static size_t entries(const char *folder)
{
    DIR *dir = opendir(folder);
    size_t count = 0;
    for (struct dirent *e; (e = readdir(dir));) {
        count += *e->d_name != '.';
    }
    closedir(dir);
    return count;
}

TEST(saving_replaces_the_whole_file_and_nothing_else)
{
    const char *path = scratch_path("p.json");
    struct stat status;
    umask(027);
    put_file("/p.json", "old");
    ck_assert_msg(profile_save(nehalem, path, &error) == 0, "%s", error.text);
    ck_assert_uint_eq(loaded(path)->classes[0].pus.count, 8);
    ck_assert_uint_eq(entries(scratch_folder()), 1);
    ck_assert_int_eq(stat(path, &status), 0);
    ck_assert_uint_eq(status.st_mode & 0777, 0640);
}

TEST(a_full_disk_leaves_the_old_profile)
{
    const char *path = scratch_path("p.json");
    put_file("/p.json", "old");
    signal(SIGXFSZ, SIG_IGN);
    struct rlimit before, small;
    getrlimit(RLIMIT_FSIZE, &before);
    small = (struct rlimit){100, before.rlim_max};
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &small), 0);
    int rc = profile_save(nehalem, path, &error);
    setrlimit(RLIMIT_FSIZE, &before);
    ck_assert_int_eq(rc, -EFBIG);
    ck_assert_msg(strstr(error.text, path) == error.text, "%s", error.text);
    ck_assert_str_eq(read_text(path), "old");
    ck_assert_uint_eq(entries(scratch_folder()), 1);
}

TEST(places_that_take_no_profile_are_refused)
{
    put_file("/file", "old");
    ck_assert_int_eq(profile_save(nehalem, scratch_path("file/p.json"), &error), -ENOTDIR);
    ck_assert_int_eq(profile_save(nehalem, scratch_folder(), &error), -EINVAL);
    ck_assert_int_eq(profile_save(nehalem, "/dev/null", &error), -EINVAL);
    ck_assert_msg(strstr(error.text, "/dev/null: not a regular file") != NULL, "%s", error.text);
}

TEST(a_link_keeps_pointing_where_it_did)
{
    const char *path = scratch_path("p.json"), *target = scratch_path("shared/p.json");
    struct stat status;
    put_file("/shared/p.json", "old");
    ck_assert_int_eq(symlink(target, path), 0);
    ck_assert_int_eq(profile_save(nehalem, path, NULL), 0);
    ck_assert(lstat(path, &status) == 0 && S_ISLNK(status.st_mode));
    loaded(target);
}

TEST(an_old_file_keeps_its_mode)
{
    const char *path = scratch_path("p.json");
    struct stat status;
    umask(022);
    put_file("/p.json", "old");
    ck_assert_int_eq(chmod(path, 0600), 0);
    ck_assert_int_eq(profile_save(nehalem, path, NULL), 0);
    ck_assert(stat(path, &status) == 0 && (status.st_mode & 0777) == 0600);
}

/* As another user, in a child: makes `path` with mode 0666, or tries to write to it. */
static int errno_of_another_user(const char *path, int how)
{
    int status;
    pid_t child = fork();
    if (child == 0) {
        umask(0);
        int file = setuid(12345) < 0 ? -1 : open(path, how | O_CLOEXEC, 0666);
        _exit(file < 0 ? errno : 0);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFEXITED(status));
    return WEXITSTATUS(status);
}

TEST(another_users_mode_is_not_kept)
{
    const char *folder = scratch_path("everybody"), *path = scratch_path("everybody/p.json");
    const mode_t masks[] = {022, 077};
    struct stat status;
    if (geteuid() != 0) { /* there is no other user to be */
        return;
    }
    ck_assert_int_eq(chmod(scratch_folder(), 0755), 0);
    ck_assert_int_eq(mkdir(folder, 0777), 0);
    ck_assert_int_eq(chmod(folder, 01777), 0);
    for (size_t i = 0; i < 2; i++) {
        ck_assert_int_eq(errno_of_another_user(path, O_WRONLY | O_CREAT | O_EXCL), 0);
        umask(masks[i]);
        ck_assert_int_eq(profile_save(nehalem, path, NULL), 0);
        ck_assert_int_eq(stat(path, &status), 0);
        ck_assert_uint_eq(status.st_mode & 0777, 0644 & ~masks[i]);
        ck_assert_uint_eq(status.st_uid, 0);
        ck_assert_int_eq(errno_of_another_user(path, O_WRONLY), EACCES);
        ck_assert_int_eq(unlink(path), 0);
    }
}

TEST(a_link_that_another_user_planted_is_not_followed)
{
    const char *folder = scratch_path("everybody"), *path = scratch_path("everybody/p.json"),
               *precious = scratch_path("precious");
    put_file("/precious", "old");
    ck_assert_int_eq(mkdir(folder, 0777), 0);
    ck_assert_int_eq(chmod(folder, 01777), 0);
    ck_assert_int_eq(symlink(precious, path), 0);
    if (lchown(path, 12345, 12345) < 0) { /* not root: there is no other user to be */
        return;
    }
    ck_assert_int_eq(profile_save(nehalem, path, &error), -EPERM);
    ck_assert_msg(strstr(error.text, "another user's link") != NULL, "%s", error.text);
    ck_assert_str_eq(read_text(precious), "old");
    ck_assert_int_eq(lchown(path, geteuid(), getegid()), 0); /* one's own is */
    ck_assert_int_eq(profile_save(nehalem, path, &error), 0);
}

TEST(only_regular_files_of_some_size_are_read)
{
    const char *path = scratch_path("pipe");
    struct servet_profile *p = NULL;
    ck_assert_int_eq(mkfifo(path, 0600), 0);
    ck_assert_int_eq(profile_load(path, &p, &error), -EINVAL); /* and does not wait for a writer */
    ck_assert_msg(strstr(error.text, "not a regular file") != NULL, "%s", error.text);
    ck_assert_int_eq(profile_load_node(path, &p, &error), -EINVAL);
    ck_assert_int_eq(profile_load("/dev/zero", &p, &error), -EINVAL);
    path = scratch_file("large", "%s", "");
    ck_assert_int_eq(truncate(path, (16 << 20) + 1), 0);
    ck_assert_int_eq(profile_load_node(path, &p, &error), -EINVAL);
    ck_assert_msg(strstr(error.text, "larger than 16 MiB") != NULL, "%s", error.text);
    ck_assert_ptr_null(p);
}

/* Of a FIFO without a writer, of one with a text in it, of a device. */
TEST(only_plain_files_are_read_as_small_ones)
{
    const char *path = scratch_path("small");
    char text[8] = "before";
    ck_assert_int_eq(mkfifo(path, 0600), 0);
    ck_assert(!profile_read_small(path, text, sizeof text));
    ck_assert_str_eq(text, "");
    int both = open(path, O_RDWR | O_CLOEXEC);
    ck_assert_int_eq(write(both, "0-1\n", 4), 4);
    ck_assert(!profile_read_small(path, text, sizeof text));
    close(both);
    ck_assert(!profile_read_small("/dev/zero", text, sizeof text));
    ck_assert(profile_read_small("/proc/self/stat", text, sizeof text));
    ck_assert_uint_eq(strlen(text), sizeof text - 1);
}

/* Everything that the weights ask of a class. */
static void assert_same_places(const struct profile_class *a, const struct profile_class *b)
{
    ck_assert(profile_set_equal(&a->pus, &b->pus));
    ck_assert_uint_eq(a->cores.group_count, b->cores.group_count);
    ck_assert_uint_eq(a->packages.group_count, b->packages.group_count);
    ck_assert_uint_eq(a->numa_count, b->numa_count);
    ck_assert_uint_eq(a->cache_count, b->cache_count);
    for (size_t i = 0; i < a->cache_count; i++) {
        ck_assert_uint_eq(a->caches[i].size_bytes, b->caches[i].size_bytes);
        ck_assert_uint_eq(a->caches[i].sharing.group_count, b->caches[i].sharing.group_count);
    }
    ck_assert_double_eq(a->memory.reference_bytes_per_s, b->memory.reference_bytes_per_s);
    ck_assert_uint_eq(a->memory.level_count, b->memory.level_count);
    for (size_t i = 0; i < a->memory.level_count; i++) {
        ck_assert_uint_eq(a->memory.levels[i].scaling_count, b->memory.levels[i].scaling_count);
    }
    ck_assert_uint_eq(a->communication.layer_count, b->communication.layer_count);
    for (size_t i = 0; i < a->communication.layer_count; i++) {
        ck_assert_double_eq(a->communication.layers[i].seconds, b->communication.layers[i].seconds);
    }
}

TEST(what_chooses_no_place_is_passed_over_for_a_node)
{
    const char *path = scratch_file("bad", "%s",
                                    replaced(read_text(EVERY_FIELD), "\"cache_curve\": [",
                                             "\"cache_curve\": [{\"bytes\": \"many\"}, "));
    struct servet_profile *all = loaded(EVERY_FIELD), *node;
    ck_assert_int_eq(profile_load(path, &node, &error), -EINVAL);
    ck_assert_msg(profile_load_node(path, &node, &error) == 0, "%s", error.text);
    kept(node);
    ck_assert_uint_eq(node->classes[0].cache_curve_count, 0);
    ck_assert_uint_eq(node->classes[0].communication.message_time_count, 0);
    ck_assert_uint_eq(node->bsp_count, 0);
    assert_same_places(&all->classes[0], &node->classes[0]);
}

TEST(files_that_are_no_profile_are_told_apart)
{
    ck_assert(profile_replaceable(scratch_path("thesis.tex"))); /* nothing is there */
    ck_assert(profile_replaceable(scratch_file("thesis.tex", "%s", "")));
    ck_assert(!profile_replaceable(scratch_file("thesis.tex", "four years of work")));
    ck_assert(profile_replaceable(NEHALEM));
}

TEST(a_wrong_profile_is_not_written)
{
    const char *path = scratch_path("p.json");
    nehalem->classes[0].caches[1].size_bytes = 0;
    ck_assert_int_eq(profile_save(nehalem, path, &error), -EINVAL);
    ck_assert_ptr_nonnull(
        strstr(error.text, "not written: $.node_classes[0].caches[1].size_bytes"));
    ck_assert_uint_eq(entries(scratch_folder()), 0);
}

TESTS(.setup = begin)

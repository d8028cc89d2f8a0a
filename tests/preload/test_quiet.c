/* Is the shim nothing at all to a program that makes no thread: no file opened, no mask touched, no
 * library loaded, nothing printed? And is what it puts into a process no more than it says? */
#include "tests/base/runner.h"
#include "tests/preload/child.h"

#define ITS_OWN .not_sanitized = "its runtime is linked too, and opens files of its own"

TEST(nothing_happens_before_the_first_thread, ITS_OWN, .tool = "strace")
{
    run_plain(CHANGES("SERVET_MEM_PRIOR=1", "SERVET_PROFILE=/nonexistent"),
              ARGV("strace", "-f", "-E", "LD_PRELOAD=" SERVET_SHIM, "-e",
                   "trace=openat,open,sched_setaffinity,sched_getaffinity", "/bin/true"),
              NULL);
    ck_assert_str_eq(child.out, "");
    ck_assert_msg(!strstr(child.err, "nonexistent"), "%s", child.err);
    ck_assert_msg(!strstr(child.err, "/sys"), "%s", child.err);
    ck_assert_msg(!strstr(child.err, "/proc"), "%s", child.err);
    ck_assert_msg(!strstr(child.err, "sched_setaffinity"), "%s", child.err);
    ck_assert_uint_eq(child_lines(child.err, "servet"), 0);
    child_err_says("libservet_pin.so");
}

/* How often a shell that forks, under this library, made each call, those of the loader's mappings
 * apart. Lines and reports cost a question what stderr is. */
static char *count_calls(const char *library)
{
    const char *variable = formatted("LD_PRELOAD=%s", library);
    child_run(&child, CHANGES("LC_ALL=C"),
              ARGV("sh", "-c",
                   "unset SERVET_REGISTRY SERVET_WATCH; export SERVET_MEM_PRIOR=1; strace -f -c -E "
                   "\"$1\" sh -c '(:); :' 2>&1 | awk '"
                   "$NF !~ /^(mmap|munmap|mprotect|total)$/ && $4 > 0 {print $NF, $4}' | sort",
                   "sh", variable));
    ck_assert_msg(child.status == 0 && child_lines(child.out, "read ") == 1, "%s", child.out);
    return kept(strdup(child.out));
}

/* Seen red: getpid() at the start and in each child, a question what stderr is. */
TEST(no_call_is_made_before_the_first_thread, ITS_OWN, .starts_programs = true, .tool = "strace")
{
    const char *empty = count_calls(PROGRAMS "/libentries_stub.so");
    ck_assert_str_eq(count_calls(SERVET_SHIM), empty);
}

TEST(nothing_but_libc_is_linked, ITS_OWN, .tool = "objdump")
{
    run_plain(NULL, ARGV("objdump", "-p", SERVET_SHIM), NULL);
    /* Arm's loader is a library as well: it has the canary of the stack. */
    size_t needed = child_lines(child.out, "  NEEDED");
    size_t loaders = child_lines(child.out, "  NEEDED               ld-linux");
    ck_assert_msg(needed - loaders == 1 && strstr(child.out, "libc.so.6"), "%s", child.out);
}

/* The version script is the list of what may be seen; everything else would meddle with programs
 * that have their own jansson or their own `profile_load`. */
TEST(only_interposed_symbols_are_seen, .tool = "nm")
{
    const char *map = read_text(SHIM_MAP);
    child_run(&child, NULL, ARGV("nm", "-D", "--defined-only", SERVET_SHIM));
    size_t seen = 0;
    for (char *line = strtok(child.out, "\n"); line; line = strtok(NULL, "\n")) {
        const char *name = strrchr(line, ' ') + 1;
        if (name[-2] == 'A') {
            continue; /* a version itself */
        }
        ck_assert_msg(strstr(map, formatted("    %.*s;", (int)strcspn(name, "@"), name)),
                      "%s is exported but not in shim.map", line);
        seen++;
    }
    ck_assert_uint_gt(seen, 10);
}

/* Seen red: nothing was said. */
TEST(who_asks_is_told_why_nothing_was_placed)
{
    static const char no_thread[] =
        "nothing was placed: the program made no thread and called no MPI_Init\n";
    const char *report = scratch_path("report");
    child_run(&child, NULL, ARGV(SERVET_PIN, "-v", "true"));
    child_err_says("%s", no_thread);
    child_run(&child, CHANGES("SERVET_DISABLE=1"), ARGV(SERVET_PIN, "-v", "true"));
    child_err_says("nothing was placed: SERVET_DISABLE is set\n");
    child_run(&child, CHANGES(formatted("SERVET_REPORT=%s", report)), ARGV(SERVET_PIN, "true"));
    ck_assert_str_eq(child.err, "");
    ck_assert_ptr_nonnull(strstr(read_text(report), no_thread));
}

/* Every program that it starts would print a line as well. */
TEST(what_a_program_starts_is_not_told_of)
{
    const char *report = scratch_path("report");
    child_run(&child, CHANGES(formatted("SERVET_REPORT=%s", report)),
              ARGV(SERVET_PIN, "timeout", "10", "true"));
    ck_assert_uint_eq(child_lines(read_text(report), ""), 1);
}

TEST(help_lists_every_variable)
{
    char *line, *end;
    child_run(&child, NULL, ARGV(SERVET_PIN, "--variables"));
    static struct run help;
    child_run(&help, NULL, ARGV(SERVET_PIN, "--help"));
    ck_assert_int_eq(help.status, 0);
    size_t variables = 0;
    for (line = strstr(child.out, "| `"); line; line = strstr(line + 1, "| `")) {
        end = strchr(line + 3, '`');
        const char *name = formatted("%.*s", (int)(end - line - 3), line + 3);
        ck_assert_msg(strstr(help.out, name), "%s is not in --help", name);
        variables++;
    }
    ck_assert_uint_ge(variables, 6);
    /* Seen red: argp broke the lines once more, and words stood alone. */
    for (line = strstr(help.out, "\n  SERVET_") + 1; *line != '\n'; line = end + 1) {
        end = strchrnul(line, '\n');
        ck_assert_msg(strncmp(line, "  ", 2) == 0 && end - line < 80, "%.*s", (int)(end - line),
                      line);
        ck_assert(*end);
    }
}

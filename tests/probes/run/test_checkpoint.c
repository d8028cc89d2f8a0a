/* Does a resumed run get back exactly what was measured, and nothing of another run, another
 * question or a torn line?
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "probes/checkpoint.h"
#include "probes/run/run.h"
#include "tests/base/runner.h"
#include "tests/profile/tree.h"

static const char *path;
static const double third[] = {1.0 / 3, 2e-9};

static struct machine_journal *opened(const char *run)
{
    struct machine_journal *journal = NULL;
    struct servet_error error;
    ck_assert_msg(probe_checkpoint_open(path, run, &journal, &error) == 0, "%s", error.text);
    return journal;
}

static void start(void)
{
    path = scratch_file("journal", "%s", "");
    struct machine_journal *journal = opened("seed=1");
    probe_checkpoint_put(journal, 7, third, 2);
    probe_checkpoint_put(journal, 8, third, 1);
    probe_checkpoint_close(journal, false);
}

static void append(const char *text)
{
    FILE *file = fopen(path, "a");
    ck_assert_ptr_nonnull(file);
    fputs(text, file);
    fclose(file);
}

TEST(answers_come_back_to_the_last_bit_and_in_order)
{
    double values[2] = {0};
    struct machine_journal *journal = opened("seed=1");
    ck_assert(probe_checkpoint_take(journal, 7, values, 2));
    ck_assert_int_eq(memcmp(values, third, sizeof third), 0);
    ck_assert(probe_checkpoint_take(journal, 8, values, 1));
    ck_assert_uint_eq(probe_checkpoint_taken(journal), 2);
    ck_assert(!probe_checkpoint_take(journal, 9, values, 1));
    probe_checkpoint_close(journal, false);
}

TEST(another_question_ends_the_replay_and_what_followed_is_gone)
{
    double values[2] = {-1, -1};
    struct machine_journal *journal = opened("seed=1");
    ck_assert(!probe_checkpoint_take(journal, 6, values, 2));
    ck_assert_double_eq(values[0], -1);
    ck_assert(!probe_checkpoint_take(journal, 7, values, 2)); /* measured from here on */
    probe_checkpoint_put(journal, 6, third, 1);
    probe_checkpoint_close(journal, false);
    journal = opened("seed=1");
    ck_assert(probe_checkpoint_take(journal, 6, values, 1));
    ck_assert(!probe_checkpoint_take(journal, 8, values, 1));
    probe_checkpoint_close(journal, false);
}

TEST(an_answer_of_another_length_is_none)
{
    double values[3];
    struct machine_journal *journal = opened("seed=1");
    ck_assert(!probe_checkpoint_take(journal, 7, values, 1));
    probe_checkpoint_close(journal, false);
}

TEST(a_torn_line_ends_it)
{
    double values[2];
    append("9 2 0x1p+0 0x1.8p");
    struct machine_journal *journal = opened("seed=1");
    ck_assert(probe_checkpoint_take(journal, 7, values, 2));
    ck_assert(probe_checkpoint_take(journal, 8, values, 1));
    ck_assert(!probe_checkpoint_take(journal, 9, values, 2));
    probe_checkpoint_put(journal, 9, third, 2); /* in the place of the torn one */
    probe_checkpoint_close(journal, false);
    journal = opened("seed=1");
    ck_assert(probe_checkpoint_take(journal, 7, values, 2));
    ck_assert(probe_checkpoint_take(journal, 8, values, 1));
    ck_assert(probe_checkpoint_take(journal, 9, values, 2));
    probe_checkpoint_close(journal, false);
}

TEST(another_run_s_journal_is_refused_and_stays)
{
    struct machine_journal *journal = NULL;
    struct servet_error error;
    double values[2];
    ck_assert_int_eq(probe_checkpoint_open(path, "seed=2", &journal, &error), -ESTALE);
    ck_assert_int_eq(probe_checkpoint_open(path, "seed=", &journal, &error), -ESTALE);
    ck_assert_ptr_nonnull(strstr(error.text, path));
    journal = opened("seed=1");
    ck_assert(probe_checkpoint_take(journal, 7, values, 2));
    probe_checkpoint_close(journal, false);
}

TEST(a_file_that_is_no_journal_is_refused_and_stays)
{
    struct machine_journal *journal = NULL;
    struct servet_error error;
    ck_assert_int_eq(truncate(path, 0), 0);
    append("a letter"); /* without an end of line, as a torn journal is */
    ck_assert_int_eq(probe_checkpoint_open(path, "seed=1", &journal, &error), -ESTALE);
    ck_assert_str_eq(read_text(path), "a letter");
}

TEST(a_head_that_was_torn_is_written_anew)
{
    double values[2];
    ck_assert_int_eq(truncate(path, 10), 0);
    struct machine_journal *journal = opened("seed=1");
    ck_assert(!probe_checkpoint_take(journal, 7, values, 2));
    probe_checkpoint_put(journal, 7, third, 2);
    probe_checkpoint_close(journal, false);
    journal = opened("seed=1");
    ck_assert(probe_checkpoint_take(journal, 7, values, 2));
    probe_checkpoint_close(journal, false);
}

TEST(only_a_finished_run_leaves_nothing)
{
    probe_checkpoint_close(opened("seed=1"), false);
    ck_assert_int_eq(access(path, F_OK), 0);
    probe_checkpoint_close(opened("seed=1"), true);
    ck_assert_int_ne(access(path, F_OK), 0);
}

TEST(every_part_of_a_question_counts)
{
    const uint64_t words[] = {1, 2}, others[] = {1, 3};
    uint64_t key = probe_checkpoint_key("native", "copy", words, 2);
    ck_assert_uint_eq(probe_checkpoint_key("native", "copy", words, 2), key);
    ck_assert_uint_ne(probe_checkpoint_key("native", "copy", others, 2), key);
    ck_assert_uint_ne(probe_checkpoint_key("native", "copy", words, 1), key);
    ck_assert_uint_ne(probe_checkpoint_key("native", "exchange", words, 2), key);
    ck_assert_uint_ne(probe_checkpoint_key("mpi", "copy", words, 2), key);
}

/* -- the conditions that a run must have in common with the one it goes on with -- */

static void assert_counts(const char *root, const char *name, const char *before, const char *after,
                          const char *machine)
{
    put_file(root, name, before);
    char *first = kept(probe_run_identity(root, machine)),
         *same = kept(probe_run_identity(root, machine));
    put_file(root, name, after);
    char *other = kept(probe_run_identity(root, machine));
    ck_assert_str_eq(first, same);
    ck_assert_msg(strcmp(first, other) != 0, "%s: %s", name, other);
}

TEST(another_kernel_setting_or_file_is_another_run)
{
    const char *root = scratch_folder();
    char machine[64];
    snprintf(machine, sizeof machine, "simulated:%s/m.json", root);
    const char *pages = "/sys/kernel/mm/transparent_hugepage/enabled";
    assert_counts(root, "/proc/sys/kernel/osrelease", "6.1.0\n", "6.2.0\n", "native");
    assert_counts(root, pages, "always [madvise] never\n", "always madvise [never]\n", "native");
    assert_counts(root, "/m.json", "{\"pus\": \"0-1\"}", "{\"pus\": \"0-2\"}", machine);
}

TESTS(.setup = start)

/* Is a plan that an earlier program has kept the one that would be made without it: for every
 * machine, mask, rank and option, after a new profile and other PUs online, and whatever somebody
 * has done to the file?
 */
#include <fcntl.h>
#include <linux/magic.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "preload/place/place.h"
#include "profile/base/hash.h"
#include "profile/base/random.h"
#include "tests/base/runner.h"
#include "tests/preload/machine.h"

static const char *const sources[] = {
    FIXTURES "/dunnington.json",
    FIXTURES "/superdome.json",
    "package:2 [numa] l3:8 core:2 pu:2",
    "package:2 group:3 core:4 pu:1",
    "package:1 core:7 pu:1",
    FIXTURES "/topologies/fakeheterocpunuma.xml",
    FIXTURES "/two-packages-256.json",
};
#define MACHINES (sizeof sources / sizeof *sources)
#define ROUNDS 300

static struct machine machines[MACHINES];
static size_t fitting; /* of them, into this kernel's masks: of others nothing is kept */
static char folder[] = "/dev/shm/servet-test-XXXXXX";
static char path[64];

/* -- how often a profile or the topology is read -- */

static unsigned reads;

#define COUNTED(function)                                                                          \
    int __real_##function(const char *, struct servet_profile **, struct servet_error *);          \
    int __wrap_##function(const char *, struct servet_profile **, struct servet_error *);          \
    int __wrap_##function(const char *from, struct servet_profile **out,                           \
                          struct servet_error *error)                                              \
    {                                                                                              \
        reads++;                                                                                   \
        return __real_##function(from, out, error);                                                \
    }

COUNTED(profile_load_node)
COUNTED(profile_from_sysfs)

/* -- plans -- */

struct question {
    struct pin_options options;
    struct pin_launcher launcher;
    uint32_t threads;
    struct profile_mask allowed, held; /* by another program */
};

static void hold(const struct question *question)
{
    struct pin_registry registry;
    const struct profile_mask nothing = {0};
    ck_assert_int_eq(pin_registry_open(path, &registry), 0);
    ck_assert_int_eq(pin_registry_enter(&registry, 77, &nothing, &question->held), 0);
    pin_registry_close(&registry);
}

/* A plan around what another program holds; `*was_read`: a profile was read for it. */
static void ask(const struct question *question, struct pin_plan *plan, bool *was_read)
{
    struct pin_claims claims = {0};
    unsigned before = reads;
    if (!profile_mask_empty(&question->held)) {
        hold(question);
    }
    ck_assert_int_eq(pin_plan_make(&question->options, &question->launcher, question->threads,
                                   &question->allowed, &claims, plan),
                     0);
    pin_claims_end(&claims);
    *was_read = reads > before;
}

/* Was a profile read for the plan? */
static bool reads_for(const struct question *question)
{
    struct pin_plan plan;
    bool was_read;
    ask(question, &plan, &was_read);
    pin_plan_free(&plan);
    return was_read;
}

static void expect_equal(const struct pin_plan *a, const struct pin_plan *b, const char *what)
{
    ck_assert_msg(a->count == b->count, "%s: %zu slots, %zu", what, a->count, b->count);
    ck_assert_msg(memcmp(a->pus, b->pus, a->count * sizeof *a->pus) == 0, "%s: other PUs", what);
    ck_assert_msg(profile_mask_equal(&a->held, &b->held), "%s: held", what);
    ck_assert_msg(profile_mask_equal(&a->own, &b->own), "%s: own", what);
    ck_assert_msg(memcmp(&a->nodes, &b->nodes, sizeof a->nodes) == 0, "%s: nodes", what);
    ck_assert_msg(strcmp(a->source, b->source) == 0, "%s: %s, %s", what, a->source, b->source);
}

/* What is asked on a machine of no use of this one's registry. */
static void begin_question(const struct machine *machine, struct question *out)
{
    memset(out, 0, sizeof *out);
    out->options.no_strangers = true;
    snprintf(out->options.registry, sizeof out->options.registry, "%s", path);
    if (machine) {
        snprintf(out->options.profile, sizeof out->options.profile, "%s", machine->path);
        out->allowed = machine->all;
    } else {
        ck_assert_int_eq(profile_mask_get(0, &out->allowed), 0);
    }
}

static void draw_ranks(struct random *random, struct pin_launcher *out)
{
    const uint32_t ranks = 1 + (uint32_t)random_below(random, 6);
    *out = (struct pin_launcher){.name = "Open MPI",
                                 .local_rank = (uint32_t)random_below(random, ranks),
                                 .local_size = ranks,
                                 .node_ranks = ranks,
                                 .job = 5};
    out->node_rank = out->local_rank;
}

static void draw(struct random *random, struct question *out)
{
    begin_question(&machines[random_below(random, fitting)], out);
    out->options.comm_prior = random_below(random, 2);
    out->options.paper = random_below(random, 4) == 0;
    out->threads = (uint32_t)random_below(random, 5);
    if (random_below(random, 2)) {
        draw_ranks(random, &out->launcher);
    }
    for (uint32_t pu = 0; pu < PROFILE_MASK_PUS; pu++) {
        if (profile_mask_has(&out->allowed, pu) && profile_mask_count(&out->allowed) > 1) {
            if (random_below(random, 4) == 0) {
                profile_mask_remove(&out->allowed, pu);
            } else if (random_below(random, 4) == 0) {
                profile_mask_add(&out->held, pu);
            }
        }
    }
}

/* The plan with the registry, but without what is kept there. */
static void ask_afresh(const struct question *question, struct pin_plan *plan)
{
    bool was_read;
    unlink(path);
    ask(question, plan, &was_read);
    ck_assert(was_read);
}

TEST(a_kept_plan_is_the_one_that_would_be_made)
{
    struct random random = {20261123};
    static struct question question;
    for (int round = 0; round < ROUNDS; round++) {
        struct pin_plan afresh, first, again;
        bool was_read;
        char what[64], aside[80];
        snprintf(aside, sizeof aside, "%s.aside", path);
        draw(&random, &question);
        snprintf(what, sizeof what, "round %d", round);
        ask(&question, &first, &was_read);
        ask(&question, &again, &was_read);
        ck_assert_msg(!was_read, "%s: nothing was kept", what);
        ck_assert_int_eq(rename(path, aside), 0); /* what is kept stays for the next rounds */
        ask_afresh(&question, &afresh);
        ck_assert_int_eq(rename(aside, path), 0);
        expect_equal(&first, &again, what);
        expect_equal(&afresh, &again, what);
        pin_plan_free(&first);
        pin_plan_free(&again);
        pin_plan_free(&afresh);
    }
}

/* Plans of one machine differ by what is asked: none is taken for another's. */
TEST(what_differs_is_not_taken_for_the_same)
{
    static struct question question, other;
    begin_question(&machines[0], &question);
    for (int change = 0; change < 7; change++) {
        unlink(path);
        reads_for(&question);
        other = question;
        switch (change) {
        case 0:
            other.options.comm_prior = true;
            break;
        case 1:
            other.options.paper = true;
            break;
        case 2:
            other.threads = 3;
            break;
        case 3:
            profile_mask_remove(&other.allowed, 0);
            break;
        case 4:
            profile_mask_add(&other.held, 1);
            break;
        case 5:
            other.launcher = (struct pin_launcher){.local_size = 2, .node_ranks = 1};
            break;
        default:
            other.launcher =
                (struct pin_launcher){.local_rank = 1, .local_size = 3, .node_ranks = 1};
        }
        ck_assert_msg(reads_for(&other), "change %d", change);
    }
}

TEST(a_new_profile_ends_what_was_kept)
{
    static struct question question;
    char aside[160];
    const char *file = machines[2].path;
    begin_question(&machines[2], &question);
    reads_for(&question);
    ck_assert(!reads_for(&question));
    /* Another file with the old one's name and times, as `cp -p` leaves it. */
    struct stat about;
    snprintf(aside, sizeof aside, "cp -p %s %s.new", file, file);
    ck_assert_int_eq(system(aside), 0);
    snprintf(aside, sizeof aside, "%s.new", file);
    ck_assert_int_eq(rename(aside, file), 0);
    ck_assert(reads_for(&question));
    /* It has just changed: it could change again and look the same. */
    ck_assert(reads_for(&question));
    do {
        usleep(100000);
        ck_assert_int_eq(stat(file, &about), 0);
    } while (about.st_ctim.tv_sec + 3 > time(NULL));
    ck_assert(reads_for(&question));
    ck_assert(!reads_for(&question));
    ck_assert_int_eq(utimensat(AT_FDCWD, file, NULL, 0), 0); /* the same text */
    ck_assert(reads_for(&question));
}

/* 0; 1: a plan was taken over; 77: no namespaces here. Another file in the place of the kernel's
 * list of PUs that are online stands for one that has gone offline. */
static int ask_with_others_online(const struct question *question)
{
    char list[80];
    snprintf(list, sizeof list, "%s/online", folder);
    FILE *file = fopen(list, "w");
    fputs("0-1\n", file);
    fclose(file);
    if (unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0 ||
        mount(list, "/sys/devices/system/cpu/online", NULL, MS_BIND, NULL) < 0) {
        return 77;
    }
    return reads_for(question) ? 0 : 1;
}

/* As on a kernel of few PUs the machine of 256: what is beyond the masks is not kept. */
TEST(pus_beyond_the_masks_are_not_kept)
{
    static struct question question;
    begin_question(NULL, &question);
    question.allowed.word[PROFILE_MASK_WORDS - 1] = 1;
    for (int i = 0; pin_registry_words() * 64 < PROFILE_MASK_PUS && i < 2; i++) {
        ck_assert(reads_for(&question));
    }
}

TEST(other_pus_online_end_what_was_kept)
{
    static struct question question;
    int status;
    begin_question(NULL, &question);
    reads_for(&question);
    ck_assert(!reads_for(&question));
    pid_t pid = fork();
    if (pid == 0) {
        _exit(ask_with_others_online(&question));
    }
    waitpid(pid, &status, 0);
    ck_assert_msg(WIFEXITED(status), "the child was ended");
    ck_assert_msg(WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == 77, "a kept plan was used");
}

/* -- what somebody has done to the file -- */

/* The one record in the file, in words: what it begins with, bytes of key and value, the
 * checksum. */
static off_t find_record(uint64_t *word, size_t words, size_t *bytes)
{
    struct stat about;
    int file = open(path, O_RDONLY);
    ck_assert_int_ge(file, 0);
    ck_assert_int_eq(fstat(file, &about), 0);
    off_t at = pin_registry_end();
    do {
        ck_assert_int_lt(at, about.st_size);
        ck_assert_int_ge(pread(file, word, words * sizeof *word, at), 0);
        at += (off_t)sizeof *word;
    } while (word[0] == 0);
    close(file);
    *bytes = 4 * sizeof *word + (size_t)(word[1] + word[2]);
    return at - (off_t)sizeof *word;
}

static void overwrite(const void *bytes, size_t count, off_t at)
{
    int file = open(path, O_WRONLY);
    ck_assert_int_eq(pwrite(file, bytes, count, at), (ssize_t)count);
    close(file);
}

TEST(what_is_not_whole_is_not_believed)
{
    static struct question question;
    static uint64_t record[4096];
    struct pin_plan first, again;
    bool was_read;
    size_t bytes;
    begin_question(&machines[0], &question);
    ask(&question, &first, &was_read);
    off_t at = find_record(record, sizeof record / sizeof *record, &bytes);
    for (size_t i = 0; i < bytes; i++) {
        unsigned char byte = ((unsigned char *)record)[i];
        byte ^= (unsigned char)(1u << (i % 8));
        overwrite(&byte, 1, at + (off_t)i);
        ask(&question, &again, &was_read);
        ck_assert_msg(was_read, "byte %zu", i);
        expect_equal(&first, &again, "altered");
        pin_plan_free(&again);
    }
    for (size_t cut = 0; cut < bytes; cut += 7) {
        ck_assert_int_eq(truncate(path, at + (off_t)cut), 0);
        ask(&question, &again, &was_read);
        ck_assert_msg(was_read, "cut at %zu", cut);
        expect_equal(&first, &again, "cut short");
        pin_plan_free(&again);
    }
    ask(&question, &again, &was_read);
    ck_assert(!was_read);
    pin_plan_free(&again);
    pin_plan_free(&first);
}

/* A record that is whole, but leads to a PU that may not be used. */
TEST(a_forged_plan_leads_nowhere)
{
    static struct question question;
    static uint64_t record[4096];
    struct pin_plan first, again;
    bool was_read;
    size_t bytes;
    begin_question(&machines[0], &question);
    ask(&question, &first, &was_read);
    off_t at = find_record(record, sizeof record / sizeof *record, &bytes);
    uint16_t *pus = (uint16_t *)(void *)((char *)record + bytes) - first.count, kept[2];
    ck_assert_uint_eq(pus[0], first.pus[0]);
    kept[0] = pus[0];
    kept[1] = pus[1];
    for (int forged = 0; forged < 2; forged++) {
        pus[0] =
            forged ? 200 : kept[1]; /* not of this machine; of it, so that it is seen to work */
        pus[1] = kept[0];
        record[3] =
            profile_hash_bytes(profile_hash_bytes(PROFILE_HASH_BEGIN, record, 3 * sizeof *record),
                               record + 4, bytes - 4 * sizeof *record);
        overwrite(record, bytes, at);
        ask(&question, &again, &was_read);
        ck_assert_int_eq(was_read, forged);
        ck_assert_uint_eq(again.pus[0], forged ? first.pus[0] : kept[1]);
        pin_plan_free(&again);
    }
    pin_plan_free(&first);
}

/* A file on a disk may be that of another machine, and of before a new start. */
TEST(nothing_is_kept_on_a_disk)
{
    static struct question question;
    struct statfs about;
    char there[] = "servet-test-XXXXXX";
    if (statfs(".", &about) < 0 || about.f_type == TMPFS_MAGIC || !mkdtemp(there)) {
        return;
    }
    begin_question(&machines[0], &question);
    snprintf(question.options.registry, sizeof question.options.registry, "%s/registry", there);
    for (int i = 0; i < 3; i++) {
        ck_assert(reads_for(&question));
    }
    unlink(question.options.registry);
    rmdir(there);
}

/* The file does not grow with what is asked. */
TEST(many_plans_take_a_bounded_place)
{
    static struct question question;
    struct stat about;
    begin_question(&machines[1], &question);
    for (uint32_t i = 1; i < 1000; i++) {
        for (uint32_t pu = 0; pu < 16; pu++) {
            (i >> pu & 1 ? profile_mask_add : profile_mask_remove)(&question.allowed, pu);
        }
        reads_for(&question);
    }
    ck_assert_int_eq(stat(path, &about), 0);
    ck_assert_int_lt(about.st_size, pin_registry_end() + 256 * 40000);
}

static void setup(void)
{
    snprintf(path, sizeof path, "%s/registry", folder);
    unlink(path);
}

TESTS(.setup = setup, .seconds = 100)

int main(void)
{
    struct statfs about;
    if (statfs("/dev/shm", &about) < 0 || about.f_type != TMPFS_MAGIC || !mkdtemp(folder)) {
        fprintf(stderr, "test_kept: no memory in /dev/shm\n");
        return 77;
    }
    for (size_t i = 0; i < MACHINES; i++) {
        open_machine(sources[i], &machines[i]);
    }
    const uint32_t pus = pin_registry_words() * 64;
    while (fitting < MACHINES &&
           profile_mask_next(&machines[fitting].all, pus) == PROFILE_MASK_PUS) {
        fitting++;
    }
    sleep(3); /* nothing is kept of profiles that have just changed */
    int failed = run_registered();
    for (size_t i = 0; i < MACHINES; i++) {
        close_machine(&machines[i]);
    }
    char command[64];
    snprintf(command, sizeof command, "rm -r %s", folder);
    return system(command) == 0 ? failed : 1;
}

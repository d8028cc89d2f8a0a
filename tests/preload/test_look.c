/* Is a look at other programs' PUs good for something in a child that is forked while another
 * thread is at it? */
#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

#include "preload/place/look.h"
#include "tests/base/runner.h"

enum { CHILDREN = 100 };

static struct profile_mask first;
static atomic_bool ends;

static bool end_a_look(void)
{
    struct profile_mask busy;
    if (pin_look_begin(&first, 0) == 0 || !pin_look_is_pending()) {
        return false;
    }
    while (pin_look_left_ns() > 0) {
    }
    return pin_look_end(&busy);
}

/* The calling thread runs, so there is something to look for. */
static void *look_on(void *unused)
{
    struct profile_mask busy;
    while (!atomic_load(&ends)) {
        (void)pin_look_begin(&first, 0);
        (void)pin_look_end(&busy);
        pin_look_forget();
    }
    return unused;
}

TEST(a_child_forked_in_the_middle_of_a_look_has_looks_of_its_own)
{
    pthread_t thread;
    profile_mask_add(&first, 0);
    ck_assert_int_eq(pthread_create(&thread, NULL, look_on, NULL), 0);
    for (int i = 0; i < CHILDREN; i++) {
        int status;
        const pid_t child = fork();
        if (child == 0) {
            pin_look_forget();
            _exit(end_a_look() ? 0 : 1);
        }
        ck_assert_int_eq(waitpid(child, &status, 0), child);
        ck_assert_int_eq(status, 0);
    }
    atomic_store(&ends, true);
    pthread_join(thread, NULL);
}

/* Work on a stack of our own. */
#include "preload/place/own_stack.h"

#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "profile/base/raw.h"

/* Reading a profile and making its plan takes 20 KiB. Only what is touched is real. */
#define STACK_BYTES (256 * 1024)

static bool has_little_left(void)
{
    pthread_attr_t attributes;
    void *lowest;
    size_t size;
    char here;
#ifdef __SANITIZE_ADDRESS__
    return false; /* it makes small stacks bigger itself */
#endif
    if (pthread_getattr_np(pthread_self(), &attributes) != 0) {
        return false;
    }
    pthread_attr_getstack(&attributes, &lowest, &size);
    pthread_attr_destroy(&attributes);
    return (uintptr_t)&here - (uintptr_t)lowest < STACK_BYTES;
}

/* Not for every thread: AddressSanitizer, in a program that was built with it, warns of
 * swapcontext(). */
static int on_own_stack(void (*work)(void))
{
    ucontext_t here, there;
    long stack = profile_raw(SYS_mmap, 0, STACK_BYTES, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
    if (stack < 0 && stack > -4096) {
        return -ENOMEM;
    }
    getcontext(&there);
    there.uc_stack.ss_sp = (void *)stack;
    there.uc_stack.ss_size = STACK_BYTES;
    there.uc_link = &here;
    makecontext(&there, work, 0);
    swapcontext(&here, &there);
    profile_raw(SYS_munmap, stack, STACK_BYTES, 0, 0, 0, 0);
    return 0;
}

int pin_with_enough_stack(bool is_first, void (*work)(void))
{
    int saved = errno, code = 0;
    if (!is_first && has_little_left()) {
        code = on_own_stack(work);
    } else {
        work();
    }
    errno = saved;
    return code;
}

/* Memory and stacks of the shim's own.
 *
 * The program's malloc may be its own, may create threads, may be what is being set up at the
 * moment, and may fail; its threads may have stacks of 16 KiB (PTHREAD_STACK_MIN), which a path and
 * a parser use up. So what has to be there whatever the program does is mapped, by system calls
 * that no library stands between. */
#include "preload/base/pages.h"

#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "profile/base/syscall.h"

/* The kernel answers with an address or with an error number below this. */
#define MOST_ERRNO 4095

/* Zeros, from the kernel and not from malloc. NULL: there are none. */
static void *map_pages(size_t bytes)
{
    long address = profile_syscall(PROFILE_SYS_MMAP, 0, (long)bytes, PROT_READ | PROT_WRITE,
                                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return address < 0 && address >= -MOST_ERRNO ? NULL : (void *)address;
}

static void unmap_pages(void *pages, size_t bytes)
{
    profile_syscall(SYS_munmap, (long)pages, (long)bytes, 0, 0, 0, 0);
}

void *pin_pages_map_once(_Atomic(void *) *at, size_t bytes)
{
    void *seen = atomic_load_explicit(at, memory_order_acquire);
    void *mapped = seen ? NULL : map_pages(bytes);
    if (!mapped || atomic_compare_exchange_strong(at, &seen, mapped)) {
        return mapped ? mapped : seen;
    }
    unmap_pages(mapped, bytes);
    return seen;
}

/* -- the process that they belong to -- */

static _Atomic(void *) mark; /* a byte that a copy of the process finds cleared */
static _Atomic(bool) is_marked;

bool pin_pages_are_ours(void)
{
    return !atomic_load_explicit(&is_marked, memory_order_relaxed) ||
           *(volatile char *)atomic_load_explicit(&mark, memory_order_relaxed) != 0;
}

void pin_pages_claim(void)
{
    char *page = pin_pages_map_once(&mark, 1);
    if (page && profile_syscall(SYS_madvise, (long)page, 1, MADV_WIPEONFORK, 0, 0, 0) == 0) {
        *page = 1;
        atomic_store(&is_marked, true);
    }
}

/* -- stacks -- */

/* Reading a profile and making its plan takes 20 KiB. Only what is touched is real. */
#define STACK_BYTES (256 * 1024)

/* A thread with less left gets such a stack. musl has no makecontext(), and gives threads 128 KiB:
 * there it is what the plan takes, with room, and a thread with less makes none. */
#ifdef NO_MAKECONTEXT
#define LITTLE_BYTES (64 * 1024)
#else
#define LITTLE_BYTES STACK_BYTES
#endif

/* The stack of the first thread grows. Other mappings begin further away than this (the kernel's
 * mmap_base() leaves 128 MiB). */
#define FIRST_STACK_BYTES (64ul * 1024 * 1024)

static uintptr_t first_stack; /* an address in it */

void pin_pages_start(void)
{
    char here;
    first_stack = (uintptr_t)&here;
}

static bool has_little_left(void)
{
    pthread_attr_t attributes;
    void *lowest;
    size_t size;
    char here;
    const uintptr_t at = (uintptr_t)&here;
    if ((at < first_stack ? first_stack - at : at - first_stack) < FIRST_STACK_BYTES) {
        return false;
    }
#ifdef __SANITIZE_ADDRESS__
    return false; /* it makes small stacks bigger itself */
#endif
    if (pthread_getattr_np(pthread_self(), &attributes) != 0) {
        return false;
    }
    pthread_attr_getstack(&attributes, &lowest, &size);
    pthread_attr_destroy(&attributes);
    /* One that the program has made, for a coroutine, lies elsewhere. */
    const uintptr_t left = at - (uintptr_t)lowest;
    return left < LITTLE_BYTES || left > size;
}

/* Not for every thread: AddressSanitizer, in a program that was built with it, warns of
 * swapcontext(). */
static int on_own_stack(void (*work)(void))
{
#ifdef NO_MAKECONTEXT
    (void)work;
    return -ENOMEM;
#else
    ucontext_t here, there;
    void *stack = map_pages(STACK_BYTES);
    if (!stack) {
        return -ENOMEM;
    }
    getcontext(&there);
    there.uc_stack.ss_sp = stack;
    there.uc_stack.ss_size = STACK_BYTES;
    there.uc_link = &here;
    makecontext(&there, work, 0);
    swapcontext(&here, &there);
    unmap_pages(stack, STACK_BYTES);
    return 0;
#endif
}

int pin_pages_with_stack(void (*work)(void))
{
    int saved = errno, rc = 0;
    if (has_little_left()) {
        rc = on_own_stack(work);
    } else {
        work();
    }
    errno = saved;
    return rc;
}

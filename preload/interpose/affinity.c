/* Interposed: questions about and changes of a thread's mask.
 *
 *   pthread_getaffinity_np   libgomp asks it for the calling thread at every omp_get_num_procs()
 *   sched_getaffinity        Python, OpenBLAS and others count the process's PUs by it
 *   syscall                  libomp and libiomp ask and set by number; each worker of theirs, and
 *                            the main thread, goes back to the process's whole set when it starts
 *                            (and seccomp(2), see process.c)
 *   sched_setaffinity        the same from runtimes that use libc's functions
 *   pthread_setaffinity_np   from runtimes and programs that use the thread library's
 *
 * The caller decides:
 *
 *   an OpenMP runtime, a numeric library's pool, Python, a managed runtime
 *       counts: gets the mask it would have without us
 *   any other caller in a program that has OpenMP or is a rank (xthi, hwloc)
 *       looks where it is: the truth
 *   any other caller (ffmpeg, a pool of the program's own)
 *       as without us
 *
 * and only while the thread is where we put it: every query of a thread that the program or taskset
 * has bound since gets the true mask. A runtime that puts a thread of ours back on the whole set
 * has not chosen anything: the thread keeps its PU. All other changes are carried out, and end our
 * pin of that thread, until the caller that got the true mask restores it (hwloc visits every PU,
 * in GROMACS between OpenBLAS's threads and libgomp's). /proc and getcpu() always tell the truth.
 */
#include <errno.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#include "preload/interpose/interpose.h"
#include "preload/place/process.h"
#include "profile/base/syscall.h"

static bool is_python(const char *dso)
{
    if (*dso == '\0') {
        dso = program_invocation_short_name;
    }
    return strncmp(dso, "python", strlen("python")) == 0 ||
           strncmp(dso, "libpython", strlen("libpython")) == 0;
}

/* Does the code at `caller` count the process's PUs when it asks for a mask? */
static bool counts_pus(const void *caller)
{
    const char *dso;
    enum profile_owner owner = pin_owner_of_code(caller, &dso);
    return owner == PROFILE_OWNER_RUNTIME || owner == PROFILE_OWNER_POOL || is_python(dso) ||
           pin_owner_program_is_managed() ||
           (!atomic_load(&pin_life.openmp_found) && !pin_here.launcher.name &&
            !pin_owner_looks(dso));
}

/* Does it put threads back on the whole set without choosing a place for them? */
static bool widens_only(const void *caller)
{
    enum profile_owner owner = pin_owner_of_code(caller, NULL);
    return owner == PROFILE_OWNER_RUNTIME || owner == PROFILE_OWNER_POOL;
}

static bool is_self(pid_t tid)
{
    return tid == 0 || tid == (pid_t)profile_syscall(SYS_gettid, 0, 0, 0, 0, 0, 0);
}

/* The set to answer with, or NULL where the truth is due. */
static const struct profile_mask *view_for(const void *caller)
{
    const struct profile_mask *view = pin_process_active() ? pin_process_view() : NULL;
    if (view && !counts_pus(caller)) {
        pin_self.told = pin_life_given_pu() + 1;
        pin_self.told_record = pin_self.record;
        return NULL;
    }
    return view;
}

/* The kernel is asked as well, into memory of ours: a size that it refuses is refused in its way,
 * and the number of bytes is its number. Never into the caller's: libgomp's threads share one
 * buffer and would count the truth while it is there. */
static long answer_mask(const struct profile_mask *view, size_t size, void *out)
{
    struct profile_mask truth = {0}, ours = {0};
    size_t room = size < sizeof truth ? size : sizeof truth;
    long bytes = profile_syscall(SYS_sched_getaffinity, 0, (long)room, (long)&truth, 0, 0, 0);
    if (bytes <= 0) {
        return bytes;
    }
    profile_mask_add(&ours, (uint32_t)pin_life_given_pu());
    /* Not equal: it was bound since, by the program or from outside. */
    memcpy(out, profile_mask_equal(&truth, &ours) ? view : &truth, (size_t)bytes);
    return bytes;
}

/* The same into all of a mask of libc's functions. 0 or an error number. */
static int answer_whole(const struct profile_mask *view, size_t size, cpu_set_t *set)
{
    const long bytes = answer_mask(view, size, set);
    if (bytes >= 0) {
        memset((char *)set + bytes, 0, size - (size_t)bytes);
    }
    return bytes < 0 ? (int)-bytes : 0;
}

/* Is `set` everything that the process has, so that the thread is not being moved anywhere in
 * particular? */
static bool is_whole(const struct profile_mask *view, size_t size, const void *set)
{
    struct profile_mask mask = {0};
    memcpy(&mask, set, size < sizeof mask ? size : sizeof mask);
    return profile_mask_within(view, &mask);
}

/* True: the change has been dealt with. Else it is to be carried out, and if it is the calling
 * thread's its mask is not ours any more. */
static bool keeps_pu(pid_t tid, size_t size, const void *set, const void *caller)
{
    if (!set || !is_self(tid) || !pin_process_active()) {
        return false;
    }
    pin_process_note_start();
    const struct profile_mask *view = pin_process_view();
    return view && widens_only(caller) && is_whole(view, size, set) &&
           pin_life_change_mask(0, pin_life_given_pu()) == 0;
}

/* A runtime moves about too (libomp visits every PU to ask it for its caches) and goes back to the
 * whole set at the end. */
static void set_by_program(size_t size, const void *set, const void *caller, int result)
{
    struct profile_mask mask = {0};
    if (result == 0 && pin_process_active() && !widens_only(caller)) {
        memcpy(&mask, set, size < sizeof mask ? size : sizeof mask);
        pin_process_bound_by_program(&mask);
    }
}

PIN_EXPORT int sched_getaffinity(pid_t tid, size_t size, cpu_set_t *set)
{
    const struct profile_mask *view = is_self(tid) ? view_for(__builtin_return_address(0)) : NULL;
    if (!view) {
        return PIN_LIBC(sched_getaffinity)(tid, size, set);
    }
    const int error = answer_whole(view, size, set);
    errno = error ? error : errno;
    return error ? -1 : 0;
}

int pin_pthread_getaffinity(pthread_t thread, size_t size, cpu_set_t *set, const void *caller)
{
    const struct profile_mask *view =
        pthread_equal(thread, pthread_self()) ? view_for(caller) : NULL;
    return view ? answer_whole(view, size, set)
                : PIN_LIBC(pthread_getaffinity_np)(thread, size, set);
}

PIN_EXPORT int pthread_getaffinity_np(pthread_t thread, size_t size, cpu_set_t *set)
{
    return pin_pthread_getaffinity(thread, size, set, __builtin_return_address(0));
}

PIN_EXPORT int sched_setaffinity(pid_t tid, size_t size, const cpu_set_t *set)
{
    const void *caller = __builtin_return_address(0);
    if (keeps_pu(tid, size, set, caller)) {
        return 0;
    }
    int result = PIN_LIBC(sched_setaffinity)(tid, size, set);
    if (is_self(tid)) {
        set_by_program(size, set, caller, result);
    }
    return result;
}

int pin_pthread_setaffinity(pthread_t thread, size_t size, const cpu_set_t *set, const void *caller)
{
    bool own = pthread_equal(thread, pthread_self());
    if (own && keeps_pu(0, size, set, caller)) {
        return 0;
    }
    int result = PIN_LIBC(pthread_setaffinity_np)(thread, size, set);
    if (own) {
        set_by_program(size, set, caller, result);
    }
    return result;
}

PIN_EXPORT int pthread_setaffinity_np(pthread_t thread, size_t size, const cpu_set_t *set)
{
    return pin_pthread_setaffinity(thread, size, set, __builtin_return_address(0));
}

#if PROFILE_HAVE_RAW

/* Strict mode takes no arguments; a filter that is NULL is a question. */
static long shut(long mode, long flags, void *filter)
{
    if (mode == SECCOMP_SET_MODE_STRICT || (mode == SECCOMP_SET_MODE_FILTER && filter)) {
        pin_process_shut(((unsigned long)flags & SECCOMP_FILTER_FLAG_TSYNC) != 0);
    }
    return profile_syscall(SYS_seccomp, mode, flags, (long)filter, 0, 0, 0);
}

static long affinity_call(long number, long first, long second, void *set, const void *caller)
{
    if (number == SYS_seccomp) {
        return shut(first, second, set);
    }
    pid_t tid = (pid_t)first;
    size_t size = (size_t)second;
    if (number == SYS_sched_setaffinity) {
        if (keeps_pu(tid, size, set, caller)) {
            return 0;
        }
        long result = profile_syscall(number, tid, (long)size, (long)set, 0, 0, 0);
        if (is_self(tid)) {
            set_by_program(size, set, caller, (int)result);
        }
        return result;
    }
    const struct profile_mask *view = set && is_self(tid) ? view_for(caller) : NULL;
    return view ? answer_mask(view, size, set)
                : profile_syscall(number, tid, (long)size, (long)set, 0, 0, 0);
}

static long with_errno(long result)
{
    if (result >= 0 || result < -4095) {
        return result;
    }
    errno = (int)-result;
    return -1;
}

#endif

#if defined(__x86_64__)

__attribute__((used)) long pin_affinity_syscall(long number, long first, long second, long set,
                                                long caller);
long pin_affinity_syscall(long number, long first, long second, long set, long caller)
{
    return with_errno(affinity_call(number, first, second, (void *)set, (const void *)caller));
}

__attribute__((used)) long pin_failed_syscall(long result);
long pin_failed_syscall(long result)
{
    return with_errno(result);
}

/* In assembler, because a call may return twice or on another stack (clone, vfork): for all other
 * numbers this is libc's function instruction by instruction. The three numbers that are of
 * interest, all of calls with three arguments, go on with the caller as fifth argument. */
#define TEXT_OF(number) TEXT_OF_(number)
#define TEXT_OF_(number) #number
PIN_EXPORT long syscall(long number, ...);
// clang-format off
__asm__(".text\n"
        ".p2align 4\n"
        ".globl syscall\n"
        ".type syscall, @function\n"
        "syscall:\n"
        "    .cfi_startproc\n"
        "    cmpq $" TEXT_OF(__NR_sched_setaffinity) ", %rdi\n"
        "    je 1f\n"
        "    cmpq $" TEXT_OF(__NR_sched_getaffinity) ", %rdi\n"
        "    je 1f\n"
        "    cmpq $" TEXT_OF(__NR_seccomp) ", %rdi\n"
        "    je 1f\n"
        "    movq %rdi, %rax\n"
        "    movq %rsi, %rdi\n"
        "    movq %rdx, %rsi\n"
        "    movq %rcx, %rdx\n"
        "    movq %r8, %r10\n"
        "    movq %r9, %r8\n"
        "    movq 8(%rsp), %r9\n"
        "    syscall\n"
        "    cmpq $-4095, %rax\n"
        "    jae 2f\n"
        "    ret\n"
        "1:  movq (%rsp), %r8\n"
        "    jmp pin_affinity_syscall\n"
        "2:  movq %rax, %rdi\n"
        "    jmp pin_failed_syscall\n"
        "    .cfi_endproc\n"
        ".size syscall, .-syscall\n");
// clang-format on

#elif PROFILE_HAVE_RAW

PIN_EXPORT long syscall(long number, ...)
{
    va_list list;
    long argument[6];
    va_start(list, number);
    for (int i = 0; i < 6; i++)
        argument[i] = va_arg(list, long);
    va_end(list);
    if (number == SYS_sched_setaffinity || number == SYS_sched_getaffinity || number == SYS_seccomp)
        return with_errno(affinity_call(number, argument[0], argument[1], (void *)argument[2],
                                        __builtin_return_address(0)));
    return with_errno(profile_syscall(number, argument[0], argument[1], argument[2], argument[3],
                                      argument[4], argument[5]));
}

#endif

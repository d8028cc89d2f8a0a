/* Preloaded: an allocator whose calls fail, from number FAIL_FROM on (counted from 1), FAIL_COUNT
 * of them (not set: all); with FAIL_BYTES only calls for so many bytes count, and fail. FAIL_SAY
 * names a file that gets the number of calls when the program, or a copy of it that goes on
 * counting, ends: the greatest. */
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *memory, size_t size);
extern void *__libc_memalign(size_t alignment, size_t size);

static atomic_ulong calls;
static unsigned long from = -1ul, count = -1ul, bytes;

__attribute__((constructor)) static void read_environment(void)
{
    const char *text = getenv("FAIL_FROM");
    from = text ? strtoul(text, NULL, 10) : from;
    text = getenv("FAIL_COUNT");
    count = text ? strtoul(text, NULL, 10) : count;
    text = getenv("FAIL_BYTES");
    bytes = text ? strtoul(text, NULL, 10) : 0;
    atomic_store(&calls, 0);
}

__attribute__((destructor)) static void say(void)
{
    const char *path = getenv("FAIL_SAY");
    int file = path ? open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600) : -1;
    char text[32] = "";
    if (file >= 0 && pread(file, text, sizeof text - 1, 0) >= 0 &&
        atomic_load(&calls) > strtoul(text, NULL, 10)) {
        (void)!pwrite(file, text, (size_t)sprintf(text, "%lu\n", atomic_load(&calls)), 0);
    }
    if (file >= 0) {
        close(file);
    }
}

void _exit(int status)
{
    say();
    syscall(SYS_exit_group, status);
    __builtin_unreachable();
}

static int fails(size_t size)
{
    if (bytes > 0 && size != bytes) {
        return 0;
    }
    unsigned long number = atomic_fetch_add(&calls, 1) + 1;
    if (number < from || number - from >= count) {
        return 0;
    }
    errno = ENOMEM;
    return 1;
}

void *malloc(size_t size)
{
    return fails(size) ? NULL : __libc_malloc(size);
}

void *calloc(size_t number, size_t size)
{
    return fails(number * size) ? NULL : __libc_calloc(number, size);
}

void *realloc(void *memory, size_t size)
{
    return fails(size) ? NULL : __libc_realloc(memory, size);
}

void *memalign(size_t alignment, size_t size)
{
    return fails(size) ? NULL : __libc_memalign(alignment, size);
}

void *aligned_alloc(size_t alignment, size_t size)
{
    return memalign(alignment, size);
}

int posix_memalign(void **memory, size_t alignment, size_t size)
{
    void *made = memalign(alignment, size);
    if (!made) {
        return ENOMEM;
    }
    *memory = made;
    return 0;
}

/* Takes GPUs: takes WORD... with "set0", "set1", "malloc", "thread" and "main": the last two print
 * the PUs of a new thread and of the main thread. CUDA's driver has "create0" (as CUDA 12), "make0"
 * (as CUDA 13) and "retain0" instead. Without a runtime (NO_RUNTIME) "ask" prints whether one is
 * found.
 *
 * The kernel's list of the PUs near a device is in NEAR0 or NEAR1: what is read of it goes by
 * open(), which is this program's own. */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "tests/preload/programs/threads.h"

static int open_either(const char *path, int flags, unsigned mode)
{
    const char *near =
        strcmp(path, "/sys/bus/pci/devices/0000:41:00.0/local_cpulist") == 0   ? "NEAR0"
        : strcmp(path, "/sys/bus/pci/devices/0000:c1:00.0/local_cpulist") == 0 ? "NEAR1"
                                                                               : NULL;
    if (!near) {
        return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
    }
    int file = memfd_create(near, 0);
    const char *text = getenv(near);
    if (write(file, text, strlen(text)) < 0 || lseek(file, 0, SEEK_SET) != 0) {
        exit(3);
    }
    return file;
}

/* Of 64 bits where files are, as the shim's. */
int open(const char *path, int flags, ...)
{
    va_list more;
    va_start(more, flags);
    unsigned mode = flags & O_CREAT ? va_arg(more, unsigned) : 0;
    va_end(more);
    return open_either(path, flags, mode);
}

static void *work(void *argument)
{
    report_worker(0, (int)(long)argument);
    return NULL;
}

#ifdef NO_RUNTIME
static void take(const char *word)
{
    if (strcmp(word, "ask") == 0) {
        report_line("%s\n", dlsym(RTLD_DEFAULT, "cudaMalloc") || dlsym(RTLD_DEFAULT, "hipMalloc")
                                ? "found"
                                : "none");
    }
}
#elif defined DRIVER
int cuCtxCreate_v2(void **context, unsigned flags, int device);
int cuCtxCreate_v4(void **context, void *parameters, unsigned flags, int device);
int cuDevicePrimaryCtxRetain(void **context, int device);

static void take(const char *word)
{
    void *context;
    const int device = word[strlen(word) - 1] - '0';
    if ((strncmp(word, "create", 6) == 0 && cuCtxCreate_v2(&context, 0, device) != 0) ||
        (strncmp(word, "make", 4) == 0 && cuCtxCreate_v4(&context, NULL, 0, device) != 0) ||
        (strncmp(word, "retain", 6) == 0 && cuDevicePrimaryCtxRetain(&context, device) != 0)) {
        report_line("refused\n");
    }
}
#else
#define NAME_(a, b) a##b
#define NAME(a, b) NAME_(a, b)
int NAME(PREFIX, SetDevice)(int device);
int NAME(PREFIX, Malloc)(void **at, size_t size);

static void take(const char *word)
{
    void *at;
    if (strncmp(word, "set", 3) == 0 && NAME(PREFIX, SetDevice)(word[3] - '0') != 0) {
        report_line("refused\n");
    }
    if (strcmp(word, "malloc") == 0) {
        must(NAME(PREFIX, Malloc)(&at, 8));
    }
}
#endif

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        pthread_t thread;
        take(argv[i]);
        if (strcmp(argv[i], "main") == 0) {
            report_worker(0, i);
        } else if (strcmp(argv[i], "thread") == 0) {
            must(pthread_create(&thread, NULL, work, (void *)(long)i));
            pthread_join(thread, NULL);
        }
    }
    return 0;
}

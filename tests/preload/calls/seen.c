/* A thread and its process as the kernel shows them: masks, signals, policies, stacks, files. */
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/preload/calls/calls.h"

enum { FILES_MOST = 64 };

uint64_t draw_state;

uint32_t draw(uint32_t below)
{
    draw_state ^= draw_state << 13;
    draw_state ^= draw_state >> 7;
    draw_state ^= draw_state << 17;
    return (uint32_t)(draw_state >> 33) % below;
}

void say(const char *format, ...)
{
    char line[512];
    va_list arguments;
    va_start(arguments, format);
    const int length = vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    (void)!write(STDOUT_FILENO, line, (size_t)length);
}

void say_mask(const char *whose, pid_t tid)
{
    cpu_set_t mask;
    CPU_ZERO(&mask);
    const int rc = sched_getaffinity(tid, sizeof mask, &mask);
    say(" %s=", whose);
    for (size_t pu = 0; rc == 0 && pu < CPU_SETSIZE; pu++) {
        if (CPU_ISSET(pu, &mask)) {
            say("%zu,", pu);
        }
    }
}

/* As the kernel has it: nothing stands in for a file. */
void say_status(const char *field)
{
    char line[4096];
    FILE *file = fopen("/proc/thread-self/status", "re");
    while (file && fgets(line, sizeof line, file)) {
        if (strncmp(line, field, strlen(field)) == 0) {
            line[strcspn(line, "\n")] = '\0';
            say(" %s", line);
        }
    }
    if (file) {
        fclose(file);
    }
}

/* The one that keeps the locks of this process (servet_pin(7)). */
static bool is_registry(int file)
{
    struct stat here, there;
    return fstat(file, &here) == 0 && stat("/proc/self/ns/time", &there) == 0 &&
           here.st_dev == there.st_dev && here.st_ino == there.st_ino;
}

void say_files(bool is_child)
{
    say(" files=");
    for (int file = 3; file < FILES_MOST; file++) {
        if (fcntl(file, F_GETFD) >= 0 && (is_child || !is_registry(file))) {
            say("%d,", file);
        }
    }
    const int next = open("/dev/null", O_RDONLY | O_CLOEXEC);
    say(" next=%d", next);
    close(next);
}

/* Threads of this process by the kernel, but for the one that watches (servet_pin(7)). */
static int threads_alive(void)
{
    struct dirent *entry;
    int count = 0;
    DIR *folder = opendir("/proc/self/task");
    while (folder && (entry = readdir(folder))) {
        char path[300], name[32] = "";
        snprintf(path, sizeof path, "/proc/self/task/%s/comm", entry->d_name);
        FILE *file = entry->d_name[0] == '.' ? NULL : fopen(path, "re");
        if (file) {
            count += fgets(name, sizeof name, file) && strcmp(name, "servet-watch\n") != 0;
            fclose(file);
        }
    }
    if (folder) {
        closedir(folder);
    }
    return count;
}

/* Those that end take a moment, and the one that watches has no name when it begins. */
void say_alive(int expected)
{
    for (int i = 0; i < 20000 && threads_alive() != expected; i++) {
        usleep(500);
    }
    say(" alive=%d", threads_alive());
}

void say_self(void)
{
    struct sched_param parameter = {0};
    int policy = -1;
    sigset_t blocked;
    unsigned long signals = 0;
    pthread_getschedparam(pthread_self(), &policy, &parameter);
    pthread_sigmask(SIG_SETMASK, NULL, &blocked);
    for (int signal = 1; signal < 32; signal++) {
        signals |= sigismember(&blocked, signal) == 1 ? 1ul << signal : 0;
    }
    say(" policy=%d/%d blocked=%lx", policy, parameter.sched_priority, signals);
}

void say_stack(void)
{
    pthread_attr_t own;
    size_t stack = 0, guard = 0;
    void *address;
    int detached = -1;
    if (pthread_getattr_np(pthread_self(), &own) == 0) {
        pthread_attr_getstack(&own, &address, &stack);
        pthread_attr_getguardsize(&own, &guard);
        pthread_attr_getdetachstate(&own, &detached);
        pthread_attr_destroy(&own);
        const bool is_there =
            (char *)&own > (char *)address && (char *)&own < (char *)address + stack;
#ifndef __GLIBC__
        stack &=
            ~(size_t)4095; /* above it musl has the TLS of all objects, the shim's 56 bytes too */
#endif
        say(" stack=%zu/%zu/%d/%d", stack, guard, detached, is_there);
    }
}

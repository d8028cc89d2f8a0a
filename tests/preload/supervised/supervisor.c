/* A machine that is not here, by notifications of seccomp(2). Masks are inherited as Linux does it:
 * each call that makes a thread or a process leaves the caller's mask, and new threads, in the
 * order of their numbers, take what was left. */
#include "tests/preload/supervised/supervisor.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MOST 4096

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_t thread;
static int notices = -1, stop[2];
static pid_t child;
static uint64_t all_pus;
static unsigned float_seed;

static struct supervised known[MOST];
static uint32_t known_count;

/* A mask that a new thread, or process, is to have. */
static struct {
    pid_t maker;
    bool is_thread;
    uint64_t mask;
} births[MOST];
static uint32_t birth_count;

/* -- who is there -- */

static struct supervised *find_thread(pid_t tid)
{
    for (uint32_t i = 0; i < known_count; i++) {
        if (known[i].tid == tid) {
            return &known[i];
        }
    }
    return NULL;
}

static struct supervised *add_thread(pid_t tid, pid_t process, uint64_t mask)
{
    known[known_count] = (struct supervised){.tid = tid, .process = process, .mask = mask};
    return &known[known_count++];
}

static uint64_t take_birth(pid_t maker, bool is_thread, uint64_t fallback)
{
    for (uint32_t i = 0; i < birth_count; i++) {
        if (births[i].maker == maker && births[i].is_thread == is_thread) {
            const uint64_t mask = births[i].mask;
            birth_count--;
            memmove(&births[i], &births[i + 1], (birth_count - i) * sizeof births[0]);
            return mask;
        }
    }
    return fallback;
}

static int by_number(const void *a, const void *b)
{
    return *(const pid_t *)a - *(const pid_t *)b;
}

/* New threads of a process. */
static void see_threads(pid_t process)
{
    char path[64];
    pid_t fresh[256];
    size_t count = 0;
    struct dirent *entry;
    snprintf(path, sizeof path, "/proc/%d/task", (int)process);
    DIR *folder = opendir(path);
    while (folder && (entry = readdir(folder))) {
        const pid_t tid = atoi(entry->d_name);
        if (tid > 0 && tid != process && !find_thread(tid) && count < 256) {
            fresh[count++] = tid;
        }
    }
    if (folder) {
        closedir(folder);
    }
    qsort(fresh, count, sizeof fresh[0], by_number);
    for (size_t i = 0; i < count; i++) {
        const struct supervised *main_thread = find_thread(process);
        add_thread(fresh[i], process,
                   take_birth(process, true, main_thread ? main_thread->mask : all_pus));
    }
}

static pid_t number_in_status(pid_t tid, const char *key)
{
    char path[64], line[256];
    pid_t number = -1;
    snprintf(path, sizeof path, "/proc/%d/status", (int)tid);
    FILE *file = fopen(path, "r");
    while (file && fgets(line, sizeof line, file)) {
        if (strncmp(line, key, strlen(key)) == 0) {
            number = atoi(line + strlen(key));
        }
    }
    if (file) {
        fclose(file);
    }
    return number;
}

static struct supervised *see_thread(pid_t tid)
{
    struct supervised *it = find_thread(tid);
    const pid_t process = it ? it->process : number_in_status(tid, "Tgid:");
    if (it || process < 0) {
        return it;
    }
    if (!find_thread(process)) {
        const pid_t parent = number_in_status(process, "PPid:");
        const struct supervised *maker = find_thread(parent);
        if (!maker) {
            return NULL; /* not of this machine */
        }
        add_thread(process, process, take_birth(parent, false, maker->mask));
    }
    see_threads(process);
    return find_thread(tid);
}

uint32_t supervisor_pu(const struct supervised *it)
{
    unsigned at =
        (float_seed ^ (unsigned)it->tid * 2654435761u) % (unsigned)__builtin_popcountll(it->mask);
    uint64_t left = it->mask;
    for (; at > 0; at--) {
        left &= left - 1;
    }
    return (uint32_t)__builtin_ctzll(left);
}

/* -- answers -- */

struct question {
    struct seccomp_notif *asked;
    struct seccomp_notif_resp *answer;
};

static bool copy(pid_t pid, void *here, uint64_t there, size_t bytes, bool to_there)
{
    const struct iovec ours = {here, bytes}, theirs = {(void *)(uintptr_t)there, bytes};
    return (to_there ? process_vm_writev(pid, &ours, 1, &theirs, 1, 0)
                     : process_vm_readv(pid, &ours, 1, &theirs, 1, 0)) == (ssize_t)bytes;
}

static void let_pass(const struct question *question)
{
    question->answer->flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
}

static void answer_mask(const struct question *question)
{
    const __u64 *arguments = question->asked->data.args;
    const pid_t caller = (pid_t)question->asked->pid,
                tid = arguments[0] ? (pid_t)arguments[0] : caller;
    struct supervised *it = see_thread(tid);
    uint64_t mask = it ? it->mask : 0;
    const size_t bytes = arguments[1] < sizeof mask ? (size_t)arguments[1] : sizeof mask;
    if (!it) {
        question->answer->error = -ESRCH;
    } else if (question->asked->data.nr == SYS_sched_getaffinity) {
        question->answer->val = (int64_t)bytes;
        question->answer->error = copy(caller, &mask, arguments[2], bytes, true) ? 0 : -EFAULT;
    } else {
        mask = 0;
        (void)copy(caller, &mask, arguments[2], bytes, false);
        question->answer->error = mask & all_pus ? 0 : -EINVAL;
        it->mask = mask & all_pus ? mask & all_pus : it->mask;
    }
}

static void answer_pu(const struct question *question)
{
    const struct supervised *it = see_thread((pid_t)question->asked->pid);
    uint32_t pu = it ? supervisor_pu(it) : 0;
    (void)copy((pid_t)question->asked->pid, &pu, question->asked->data.args[0], sizeof pu, true);
}

static void note_birth(const struct question *question)
{
    const pid_t maker = (pid_t)question->asked->pid;
    const struct supervised *it = see_thread(maker);
    uint64_t flags = question->asked->data.nr == SYS_clone ? question->asked->data.args[0] : 0;
    if (question->asked->data.nr == SYS_clone3) {
        (void)copy(maker, &flags, question->asked->data.args[0], sizeof flags, false);
    }
    if (it) {
        see_threads(it->process);
        births[birth_count].maker = it->process;
        births[birth_count].is_thread = flags & CLONE_THREAD;
        births[birth_count++].mask = it->mask;
    }
    let_pass(question);
}

/* The kernel's text on this thread. Fields behind the name count from the state, 3. */
static int stat_of(const struct supervised *it)
{
    char path[64], text[1024] = "", out[2048];
    snprintf(path, sizeof path, "/proc/%d/task/%d/stat", (int)it->process, (int)it->tid);
    FILE *file = fopen(path, "r");
    if (!file || !fgets(text, sizeof text, file)) {
        return -1;
    }
    fclose(file);
    char *field = strrchr(text, ')') + 2, *rest = NULL;
    size_t used = (size_t)snprintf(out, sizeof out, "%.*s", (int)(field - text), text);
    struct timespec now;
    clock_gettime(CLOCK_BOOTTIME, &now);
    int number = 3;
    for (field = strtok_r(field, " \n", &rest); field; field = strtok_r(NULL, " \n", &rest)) {
        char ours[32] = "";
        snprintf(ours, sizeof ours, "%ld",
                 number == 14   ? it->works ? 100 : 0
                 : number == 22 ? (long)now.tv_sec * 100 - 200
                                : (long)supervisor_pu(it));
        const bool replaced = number == 14 || number == 22 || number == 39;
        const char *as = number == 3 ? (it->works ? "R" : "S") : replaced ? ours : field;
        used += (size_t)snprintf(out + used, sizeof out - used, "%s ", number == 15 ? "0" : as);
        number++;
    }
    int memory = memfd_create("stat", MFD_CLOEXEC);
    if (memory >= 0 && write(memory, out, used) == (ssize_t)used) {
        lseek(memory, 0, SEEK_SET);
    }
    return memory;
}

/* True: answered. */
static bool answer_stat(const struct question *question, pid_t pid, pid_t tid)
{
    struct supervised *it = see_thread(tid);
    if (!it || it->process != pid) {
        question->answer->error = -ENOENT;
        return false;
    }
    int memory = stat_of(it);
    struct seccomp_notif_addfd add = {.id = question->asked->id,
                                      .flags = SECCOMP_ADDFD_FLAG_SEND,
                                      .srcfd = (uint32_t)memory,
                                      .newfd_flags = O_CLOEXEC};
    const bool added = memory >= 0 && ioctl(notices, SECCOMP_IOCTL_NOTIF_ADDFD, &add) >= 0;
    if (memory >= 0) {
        close(memory);
    }
    question->answer->error = added ? 0 : -ENOENT;
    return added;
}

static bool answer_open(const struct question *question)
{
    char path[64] = "", self[16];
    int pid, tid, end = 0;
    const pid_t caller = (pid_t)question->asked->pid;
    for (size_t i = 0; i + 1 < sizeof path; i++) {
        if (!copy(caller, &path[i], question->asked->data.args[1] + i, 1, false) || !path[i]) {
            break;
        }
    }
    if (sscanf(path, "/proc/%15[^/]/task/%d/stat%n", self, &tid, &end) == 2 && end > 0 &&
        !path[end]) {
        const struct supervised *it = see_thread(caller);
        pid = strcmp(self, "self") == 0 && it ? it->process : atoi(self);
        return answer_stat(question, pid, tid);
    }
    if (sscanf(path, "/proc/%d/task%n", &pid, &end) == 1 && end > 0 && !path[end] &&
        !see_thread(pid)) {
        question->answer->error = -ENOENT; /* no thread of this machine */
        return false;
    }
    let_pass(question);
    return false;
}

/* False: it has been answered already. */
static bool decide(const struct question *question)
{
    switch (question->asked->data.nr) {
    case SYS_sched_getaffinity:
    case SYS_sched_setaffinity:
        answer_mask(question);
        return true;
    case SYS_getcpu:
        answer_pu(question);
        return true;
    case SYS_openat:
        return !answer_open(question);
    default:
        note_birth(question);
        return true;
    }
}

static void *supervise(void *unused)
{
    struct pollfd ready[] = {{.fd = notices, .events = POLLIN}, {.fd = stop[0], .events = POLLIN}};
    while (poll(ready, 2, -1) > 0 && !ready[1].revents && !(ready[0].revents & POLLHUP)) {
        struct seccomp_notif asked = {0};
        if (ioctl(notices, SECCOMP_IOCTL_NOTIF_RECV, &asked) < 0) {
            continue;
        }
        struct seccomp_notif_resp answer = {.id = asked.id};
        const struct question question = {&asked, &answer};
        pthread_mutex_lock(&lock);
        const bool send = decide(&question);
        pthread_mutex_unlock(&lock);
        answer.val = answer.error ? 0 : answer.val;
        if (send) {
            (void)ioctl(notices, SECCOMP_IOCTL_NOTIF_SEND, &answer);
        }
    }
    return unused;
}

/* -- begin and end -- */

#define ASK(number)                                                                                \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1),                                             \
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF)

static int install(void)
{
    struct sock_filter lines[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        ASK(SYS_sched_setaffinity),
        ASK(SYS_sched_getaffinity),
        ASK(SYS_getcpu),
        ASK(SYS_openat),
        ASK(SYS_clone),
        ASK(SYS_clone3),
#ifdef SYS_fork
        ASK(SYS_fork),
        ASK(SYS_vfork),
#endif
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog program = {sizeof lines / sizeof lines[0], lines};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0) {
        return -1;
    }
    return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER,
                        &program);
}

/* One descriptor through a pair of sockets; -1: none came. */
static int pass(int by, int sent)
{
    char byte = 'x';
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(sizeof(int))];
    } control = {0};
    struct iovec one = {&byte, 1};
    struct msghdr message = {.msg_iov = &one, .msg_iovlen = 1};
    message.msg_control = &control;
    message.msg_controllen = sizeof control;
    if (sent < 0) {
        int got = -1;
        if (recvmsg(by, &message, 0) == 1 && CMSG_FIRSTHDR(&message)) {
            memcpy(&got, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof got);
        }
        return got;
    }
    control.header = (struct cmsghdr){
        .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(sizeof(int))};
    memcpy(CMSG_DATA(&control.header), &sent, sizeof sent);
    return (int)sendmsg(by, &message, 0);
}

static void skip(const char *what)
{
    printf("skipped: %s: %s\n", what, strerror(errno));
    exit(77);
}

pid_t supervisor_begin(uint32_t pus, unsigned seed, void (*work)(void *argument), void *argument)
{
    int pair[2];
    char byte;
    all_pus = pus >= 64 ? UINT64_MAX : (UINT64_C(1) << pus) - 1;
    float_seed = seed;
    known_count = birth_count = 0;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0 ||
        pipe2(stop, O_CLOEXEC) < 0) {
        skip("no pair of sockets");
    }
    child = fork();
    if (child == 0) {
        int listener = install();
        if (listener >= 0 && pass(pair[1], listener) == 1 && read(pair[1], &byte, 1) == 1) {
            close(listener);
            work(argument);
        }
        _exit(0);
    }
    close(pair[1]);
    notices = child > 0 ? pass(pair[0], -1) : -1;
    if (notices < 0) {
        skip("no supervisor of system calls");
    }
    add_thread(child, child, all_pus);
    pthread_create(&thread, NULL, supervise, NULL);
    if (write(pair[0], "", 1) != 1) {
        skip("no child");
    }
    close(pair[0]);
    return child;
}

void supervisor_end(void)
{
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    (void)!write(stop[1], "", 1);
    pthread_join(thread, NULL);
    close(notices);
    close(stop[0]);
    close(stop[1]);
}

uint32_t supervisor_threads(pid_t process, struct supervised *out, uint32_t most)
{
    uint32_t count = 0;
    pthread_mutex_lock(&lock);
    see_threads(process);
    for (uint32_t i = 0; i < known_count && count < most; i++) {
        if (known[i].process == process) {
            out[count++] = known[i];
        }
    }
    pthread_mutex_unlock(&lock);
    return count;
}

void supervisor_works(pid_t tid)
{
    pthread_mutex_lock(&lock);
    struct supervised *it = see_thread(tid);
    if (it) {
        it->works = true;
    }
    pthread_mutex_unlock(&lock);
}

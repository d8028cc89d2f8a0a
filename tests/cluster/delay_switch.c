/* An Ethernet switch over TAP devices that holds every frame back for a delay of its own for each
 * pair of ports: links of chosen latency on kernels without sch_netem.
 *
 *     delay_switch PREFIX N READY_FILE d11 d12 … dNN       microseconds, rows are senders
 *
 * Makes the devices PREFIX1 … PREFIXN in the network namespace it runs in (the caller moves them
 * on), writes its process id to READY_FILE and forwards until it is killed. Adds 10 to 30 us of its
 * own. */
#include <errno.h>
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

enum {
    PORTS_MAX = 16,
    QUEUE_FRAMES = 4096, /* in flight between two ports; more are dropped, as a switch would */
    FRAME_BYTES = 65536,
    HEADER_BYTES = 14,
    ADDRESS_BYTES = 6,
    ADDRESSES = 256,
    BURST = 64, /* frames taken from one port before the others have their turn */
};

struct frame {
    int64_t due_ns;
    size_t bytes;
    unsigned char *data;
};

struct queue {
    struct frame *frames;
    unsigned head, tail;
};

struct port_of {
    unsigned char address[ADDRESS_BYTES];
    int port;
};

static int ports, device[PORTS_MAX];
static int64_t delay_ns[PORTS_MAX][PORTS_MAX];
static struct queue queues[PORTS_MAX][PORTS_MAX];
static struct port_of table[ADDRESSES];
static int known;

static int64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static struct port_of *find(const unsigned char *address)
{
    for (int i = 0; i < known; i++) {
        if (memcmp(table[i].address, address, ADDRESS_BYTES) == 0) {
            return &table[i];
        }
    }
    return NULL;
}

static void learn(const unsigned char *address, int port)
{
    struct port_of *entry = find(address);
    if (!entry && known < ADDRESSES) {
        entry = &table[known++];
        memcpy(entry->address, address, ADDRESS_BYTES);
    }
    if (entry) {
        entry->port = port;
    }
}

static void push(int from, int to, const unsigned char *data, size_t bytes, int64_t arrived)
{
    struct queue *queue = &queues[from][to];
    if (queue->tail - queue->head == QUEUE_FRAMES) {
        return;
    }
    if (!queue->frames && !(queue->frames = calloc(QUEUE_FRAMES, sizeof *queue->frames))) {
        exit(1);
    }
    struct frame *frame = &queue->frames[queue->tail % QUEUE_FRAMES];
    frame->data = malloc(bytes);
    if (!frame->data) {
        exit(1);
    }
    memcpy(frame->data, data, bytes);
    frame->bytes = bytes;
    frame->due_ns = arrived + delay_ns[from][to];
    queue->tail++;
}

/* Sends what is due; returns when the next frame will be, or -1. */
static int64_t deliver(void)
{
    int64_t next = -1;
    for (int from = 0; from < ports; from++) {
        for (int to = 0; to < ports; to++) {
            struct queue *queue = &queues[from][to];
            for (; queue->head != queue->tail; queue->head++) {
                struct frame *frame = &queue->frames[queue->head % QUEUE_FRAMES];
                if (frame->due_ns > now_ns()) {
                    next = next < 0 || frame->due_ns < next ? frame->due_ns : next;
                    break;
                }
                if (write(device[to], frame->data, frame->bytes) < 0) {
                    /* the node is gone: the frame is lost, as on a cut cable */
                }
                free(frame->data);
            }
        }
    }
    return next;
}

static void forward(int from, const unsigned char *data, size_t bytes, int64_t arrived)
{
    learn(data + ADDRESS_BYTES, from);
    const struct port_of *target = data[0] & 1 ? NULL : find(data);
    for (int to = 0; to < ports; to++) {
        if (to != from && (!target || target->port == to)) {
            push(from, to, data, bytes, arrived);
        }
    }
}

static void receive(int port, int64_t arrived)
{
    static unsigned char data[FRAME_BYTES];
    for (int i = 0; i < BURST; i++) {
        ssize_t bytes = read(device[port], data, sizeof data);
        if (bytes < HEADER_BYTES) {
            return;
        }
        forward(port, data, (size_t)bytes, arrived);
    }
}

static int open_port(const char *prefix, int number)
{
    struct ifreq request = {.ifr_flags = IFF_TAP | IFF_NO_PI};
    int fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
    snprintf(request.ifr_name, sizeof request.ifr_name, "%s%d", prefix, number);
    return fd >= 0 && ioctl(fd, TUNSETIFF, &request) == 0 ? fd : -1;
}

static void run(void)
{
    struct pollfd ready[PORTS_MAX];
    for (int i = 0; i < ports; i++) {
        ready[i] = (struct pollfd){.fd = device[i], .events = POLLIN};
    }
    for (;;) {
        int64_t next = deliver(), left = next - now_ns();
        left = left < 0 ? 0 : left;
        const struct timespec wait = {left / 1000000000, left % 1000000000};
        if (ppoll(ready, (nfds_t)ports, next < 0 ? NULL : &wait, NULL) < 0 && errno != EINTR) {
            return;
        }
        int64_t arrived = now_ns();
        for (int i = 0; i < ports; i++) {
            if (ready[i].revents & POLLIN) {
                receive(i, arrived);
            }
        }
    }
}

int main(int argc, char **argv)
{
    ports = argc > 3 ? atoi(argv[2]) : 0;
    if (ports < 1 || ports > PORTS_MAX || argc != 4 + ports * ports) {
        fprintf(stderr, "delay_switch: expected PREFIX N READY_FILE and N * N delays\n");
        return 2;
    }
    for (int i = 0; i < ports * ports; i++) {
        delay_ns[i / ports][i % ports] = (int64_t)(atof(argv[4 + i]) * 1000);
    }
    for (int i = 0; i < ports; i++) {
        device[i] = open_port(argv[1], i + 1);
        if (device[i] < 0) {
            fprintf(stderr, "delay_switch: %s%d: %s\n", argv[1], i + 1, strerror(errno));
            return 1;
        }
    }
    prctl(PR_SET_TIMERSLACK, 1); /* the default of 50 us would be added to every delay */
    FILE *file = fopen(argv[3], "w");
    if (!file) {
        fprintf(stderr, "delay_switch: %s: %s\n", argv[3], strerror(errno));
        return 1;
    }
    fprintf(file, "%d\n", getpid());
    fclose(file);
    run();
    return 1;
}

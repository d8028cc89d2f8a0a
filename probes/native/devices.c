/* Copies to GPUs of this machine: servet-devices as a child that answers into a file in memory, and
 * is ended when it takes too long. Rounds that it had finished count. */
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "probes/native/native.h"
#include "probes/network/network.h"
#include "profile/base/child.h"
#include "profile/topology/gpu_makers.h"

static int end(pid_t pid, int rc)
{
    kill(-pid, SIGKILL);
    (void)TEMP_FAILURE_RETRY(waitpid(pid, NULL, 0));
    return rc;
}

/* 0; -EINTR, -ETIME (the machine's time is over); -EIO (it crashed or hung). */
static int wait_for_copies(struct machine *machine, pid_t pid, struct servet_error *why)
{
    static const struct timespec look = {.tv_nsec = 5 * 1000 * 1000};
    const double hangs_s = probe_machine_elapsed(machine) + MACHINE_ANSWER_S;
    for (;;) {
        int status;
        const double now_s = probe_machine_elapsed(machine);
        if (waitpid(pid, &status, WNOHANG) == pid) {
            bool well = WIFEXITED(status) && WEXITSTATUS(status) == 0;
            return well ? 0 : profile_error(why, -EIO, "its library crashed");
        }
        if (machine->cancel && *machine->cancel) {
            return end(pid, -EINTR);
        }
        if (machine->until_s > 0 && now_s > machine->until_s) {
            return end(pid, -ETIME);
        }
        if (now_s > hangs_s) {
            return end(pid, profile_error(why, -EIO, "its library did not answer within %.0f s",
                                          MACHINE_ANSWER_S));
        }
        nanosleep(&look, NULL);
    }
}

static void take_device_line(const char *line, size_t count, struct machine_transferred *out,
                             struct servet_error *why)
{
    double to, from, seconds;
    size_t place;
    if (line[0] == '!' && !why->text[0]) {
        profile_error(why, 0, "%s", line + strlen("! "));
    }
    if (sscanf(line, "= %zu %lf %lf %lf", &place, &to, &from, &seconds) == 4 && place < count &&
        out[place].rounds < MACHINE_TRANSFER_ROUNDS) {
        const size_t round = out[place].rounds++;
        out[place].to_device_bytes_per_s[round] = to;
        out[place].from_device_bytes_per_s[round] = from;
        out[place].seconds[round] = seconds;
    }
}

static int take_answer(int fd, size_t count, struct machine_transferred *out,
                       struct servet_error *why)
{
    FREED char *text = NULL;
    char *line;
    TRY(profile_child_read(fd, &text));
    for (char *rest = text; (line = strsep(&rest, "\n"));) {
        take_device_line(line, count, out, why);
    }
    return 0;
}

/* Starts it, waits for it and takes its answers. */
static int ask_device(struct machine *machine, char **arguments, size_t count,
                      struct machine_transferred *out, struct servet_error *why)
{
    pid_t pid;
    const int answers = profile_child_file();
    struct profile_child child = {.argv = arguments,
                                  .in = PROFILE_CHILD_NOTHING,
                                  .out = answers,
                                  .errors = PROFILE_CHILD_NOTHING,
                                  .own_group = true,
                                  .dies_with_us = SIGKILL};
    int rc = answers < 0 ? answers : profile_child_start(&child, &pid);
    if (rc == 0) {
        rc = wait_for_copies(machine, pid, why);
        int read = rc == 0 || rc == -ETIME ? take_answer(answers, count, out, why) : 0;
        rc = read < 0 ? read : rc;
    }
    if (answers >= 0) {
        close(answers);
    }
    bool any = false;
    for (size_t i = 0; i < count; i++) {
        any |= out[i].rounds > 0;
    }
    return rc == -ETIME && any ? 0 : rc;
}

/* "PLACE:NODE:PUS", to be freed; NULL: no memory. */
static char *place_text(const struct machine_transfer *place, size_t index)
{
    FREED char *pus = profile_set_text(place->pus);
    char *text = NULL;
    return pus && asprintf(&text, "%zu:%d:%s", index, place->numa, pus) >= 0 ? text : NULL;
}

enum { PROGRAM, LIBRARY, ADDRESS, PLACES };

static void free_arguments(char ***arguments)
{
    for (size_t i = PLACES; *arguments && (*arguments)[i]; i++) {
        free((*arguments)[i]);
    }
    free(*arguments);
}

int probe_native_transfer(struct machine *machine, const struct profile_device *device,
                          const struct machine_transfer *places, size_t count,
                          struct machine_transferred *out, struct servet_error *why)
{
    char program[PATH_MAX];
    const struct profile_gpu_maker *maker = profile_gpu_maker(device->pci_vendor);
    const char *library = maker ? maker->copies : NULL;
    size_t used = PLACES;
    if (!library || !device->bus_id) {
        return profile_error(why, -ENOTSUP, "no library of its maker is known");
    }
    if (probe_network_find("servet-devices", program) < 0) {
        return profile_error(why, -ENOTSUP, "the program servet-devices is not installed");
    }
    FREED_BY(free_arguments) char **arguments = calloc(PLACES + count + 1, sizeof *arguments);
    TRY(arguments ? 0 : -ENOMEM);
    for (size_t i = 0; i < count; i++) {
        out[i].rounds = 0;
        if (probe_native_node_room(places[i].numa, MACHINE_TRANSFER_BYTES) < 0) {
            profile_error(why, 0, "node %d has too little free memory", places[i].numa);
            continue;
        }
        arguments[used] = place_text(&places[i], i);
        TRY(arguments[used++] ? 0 : -ENOMEM);
    }
    arguments[PROGRAM] = program;
    arguments[LIBRARY] = (char *)(uintptr_t)library;
    arguments[ADDRESS] = device->bus_id;
    return used > PLACES ? ask_device(machine, arguments, count, out, why) : 0;
}

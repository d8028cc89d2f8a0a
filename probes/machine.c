#include "machine.h"

#include <errno.h>
#include <string.h>

#include "machine_guard.h"

static bool cancelled(const struct machine *machine)
{
    return machine->cancel && *machine->cancel;
}

/* Quadratic, but an operation that keeps n PUs busy costs far more than n * n comparisons. */
static bool distinct_and_known(const struct machine *machine, const uint32_t *pus, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (!profile_set_has(&machine->pus, pus[i])) {
            return false;
        }
        for (size_t j = 0; j < i; j++) {
            if (pus[i] == pus[j]) {
                return false;
            }
        }
    }
    return count > 0;
}

static int run_traverse(struct machine *machine, const void *what, const void *pus, size_t count, double *values)
{
    return machine->ops->traverse(machine, what, pus, count, values);
}

static int run_copy(struct machine *machine, const void *what, const void *pus, size_t count, double *values)
{
    return machine->ops->copy(machine, what, pus, count, values);
}

static int run_exchange(struct machine *machine, const void *what, const void *pairs, size_t count, double *values)
{
    return machine->ops->exchange(machine, what, pairs, count, values);
}

int machine_traverse(struct machine *machine, const struct machine_traversal *what, const uint32_t *pus, size_t count,
                     double *seconds_per_access)
{
    if (!machine->ops->traverse) {
        return -ENOTSUP;
    }
    if (cancelled(machine)) {
        return -EINTR;
    }
    if (what->stride_bytes < sizeof(void *) || what->bytes < what->stride_bytes ||
        !distinct_and_known(machine, pus, count)) {
        return -EINVAL;
    }
    return machine_guarded(machine, run_traverse, what, pus, count, count, seconds_per_access);
}

int machine_copy(struct machine *machine, const struct machine_copy *what, const uint32_t *pus, size_t count,
                 double *bytes_per_s)
{
    if (!machine->ops->copy) {
        return -ENOTSUP;
    }
    if (cancelled(machine)) {
        return -EINTR;
    }
    if (what->bytes == 0 || what->passes == 0 || !distinct_and_known(machine, pus, count)) {
        return -EINVAL;
    }
    return machine_guarded(machine, run_copy, what, pus, count, count, bytes_per_s);
}

int machine_exchange(struct machine *machine, const struct machine_exchange *what, const struct profile_pair *pairs,
                     size_t count, double *seconds)
{
    if (!machine->ops->exchange) {
        return -ENOTSUP;
    }
    if (cancelled(machine)) {
        return -EINTR;
    }
    if (what->bytes == 0 || what->round_trips == 0 || what->batches == 0 || count == 0) {
        return -EINVAL;
    }
    for (size_t i = 0; i < count; i++) {
        const uint32_t both[] = {pairs[i].a, pairs[i].b};
        if (!distinct_and_known(machine, both, 2)) {
            return -EINVAL;
        }
        for (size_t j = 0; j < i; j++) {
            if (pairs[j].a == both[0] || pairs[j].b == both[0] || pairs[j].a == both[1] || pairs[j].b == both[1]) {
                return -EINVAL;
            }
        }
    }
    return machine_guarded(machine, run_exchange, what, pairs, count, 2 * count, seconds);
}

double machine_elapsed(struct machine *machine)
{
    return machine->ops->elapsed ? machine->ops->elapsed(machine) : 0;
}

void machine_close(struct machine *machine)
{
    if (machine->ops && machine->ops->close) {
        machine->ops->close(machine);
    }
    profile_set_free(&machine->pus);
    profile_free(machine->declared);
    memset(machine, 0, sizeof *machine);
}

const char *machine_strerror(int error)
{
    switch (-error) {
    case ENOTSUP:
        return "not possible with this kind of machine";
    case EPERM:
        return "not allowed to pin a thread to this PU";
    case ENODEV:
        return "a PU went offline while it was measured";
    case ENOMEM:
        return "not enough memory for the working sets";
    case EINTR:
        return "interrupted";
    default:
        return strerror(-error);
    }
}

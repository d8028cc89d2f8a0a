/* The lines "cpuN user nice system idle iowait irq softirq steal …" of /proc/stat. They are read
 * byte by byte: this runs in other people's threads, whose stacks are small. */
#include "profile/base/ticks.h"

#include <fcntl.h>
#include <stdbool.h>
#include <string.h>

#include "profile/base/syscall.h"

/* The fields that are summed: those after `steal` are in `user` and `nice` already. */
enum { IDLE = 3, WAITING = 4, STOLEN = 7, FIELDS = 8 };

struct bytes {
    int file;
    long at, count;
    char text[512];
};

/* The next byte, left where it is; '\0': the end. */
static char peek_byte(struct bytes *from)
{
    if (from->at == from->count) {
        from->count =
            profile_syscall(SYS_read, from->file, (long)from->text, sizeof from->text, 0, 0, 0);
        from->count = from->count > 0 ? from->count : 0;
        from->at = 0;
    }
    return from->at < from->count ? from->text[from->at] : '\0';
}

static bool take_byte(struct bytes *from, char wanted)
{
    const bool is_there = peek_byte(from) == wanted && wanted != '\0';
    from->at += is_there;
    return is_there;
}

static bool take_number(struct bytes *from, uint64_t *out)
{
    char byte = peek_byte(from);
    const bool is_there = byte >= '0' && byte <= '9';
    for (*out = 0; byte >= '0' && byte <= '9'; byte = peek_byte(from)) {
        *out = 10 * *out + (uint64_t)(byte - '0');
        from->at++;
    }
    return is_there;
}

/* False: no more lines of PUs. The first line is that of all PUs, and has no number. */
static bool take_pu_line(struct bytes *from, struct profile_ticks *ticks, size_t pus)
{
    uint64_t pu, fields[FIELDS] = {0};
    struct profile_ticks sum = {0};
    if (!take_byte(from, 'c') || !take_byte(from, 'p') || !take_byte(from, 'u')) {
        return false;
    }
    const bool is_wanted = take_number(from, &pu) && pu < pus;
    for (int i = 0; i < FIELDS && take_byte(from, ' ') && take_number(from, &fields[i]); i++) {
        sum.all += fields[i];
    }
    sum.idle = fields[IDLE] + fields[WAITING];
    sum.stolen = fields[STOLEN];
    if (is_wanted) {
        ticks[pu] = sum;
    }
    while (peek_byte(from) && !take_byte(from, '\n')) {
        from->at++;
    }
    return true;
}

int profile_ticks_read(const char *path, struct profile_ticks *ticks, size_t pus)
{
    struct bytes from = {.at = 0, .count = 0};
    memset(ticks, 0, pus * sizeof *ticks);
    from.file =
        (int)profile_syscall(SYS_openat, AT_FDCWD, (long)path, O_RDONLY | O_CLOEXEC, 0, 0, 0);
    if (from.file < 0) {
        return from.file;
    }
    while (take_pu_line(&from, ticks, pus)) {
    }
    profile_syscall(SYS_close, from.file, 0, 0, 0, 0, 0);
    return 0;
}

int profile_ticks_get(struct profile_ticks *ticks, size_t pus)
{
    return profile_ticks_read("/proc/stat", ticks, pus);
}

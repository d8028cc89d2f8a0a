/* Writing without the signals that a write can raise. */
#include "signals.h"

#include <signal.h>
#include <stddef.h>
#include <time.h>

#include "raw.h"

#define BIT(signal) ((uint64_t)1 << ((signal)-1))

/* Of the thread that writes, not of the process. */
#define RAISED_BY_WRITING (BIT(SIGPIPE) | BIT(SIGXFSZ))

void pin_signals_hold(struct pin_signals *before)
{
    /* A terminal takes what comes from the background when this signal is blocked. */
    uint64_t held = RAISED_BY_WRITING | BIT(SIGTTOU);
    *before = (struct pin_signals){0};
    pin_raw(SYS_rt_sigpending, (long)&before->pending, sizeof before->pending, 0, 0, 0, 0);
    pin_raw(SYS_rt_sigprocmask, SIG_BLOCK, (long)&held, (long)&before->mask, sizeof held, 0, 0);
}

void pin_signals_release(const struct pin_signals *before)
{
    struct timespec at_once = {0};
    uint64_t now = 0;
    pin_raw(SYS_rt_sigpending, (long)&now, sizeof now, 0, 0, 0, 0);
    uint64_t ours = now & ~before->pending & RAISED_BY_WRITING;
    while (ours != 0 && pin_raw(SYS_rt_sigtimedwait, (long)&ours, (long)NULL, (long)&at_once, sizeof ours, 0, 0) > 0)
        ;
    pin_raw(SYS_rt_sigprocmask, SIG_SETMASK, (long)&before->mask, 0, sizeof before->mask, 0, 0);
}

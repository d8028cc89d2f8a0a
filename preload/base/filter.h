/* A filter of system calls (seccomp) that was there before the program. */
#pragma once

#include <stdbool.h>

/* Is there one in the calling thread? True also where that cannot be known. One thread at a time
 * asks. */
bool pin_filter_is_there(void);

/* True: there is none, or it kills for no call that placing takes. `*line`: for none that a line on
 * stderr takes. */
bool pin_filter_spares_us(bool *line);

/* Every entry in which a process becomes a rank, of a library that does nothing. Says that it was
 * reached, and with which mask its own threads would start. */
#include "entries.h"
#include "report.h"

#define STUB(name)                                                                                 \
    int name(void *a, void *b, void *c, void *d);                                                  \
    int name(void *a, void *b, void *c, void *d)                                                   \
    {                                                                                              \
        (void)a, (void)b, (void)c, (void)d;                                                        \
        report_line("reached " #name "\n");                                                        \
        return 42;                                                                                 \
    }

ENTRIES(STUB)

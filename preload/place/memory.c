/* Where a process's memory goes. */
#include "preload/place/place.h"

#include <linux/mempolicy.h>
#include <stdbool.h>
#include <string.h>

#include "preload/node/node.h"
#include "profile/base/raw.h"

static bool is_empty(const struct pin_nodes *nodes)
{
    for (size_t i = 0; i < sizeof nodes->word / sizeof *nodes->word; i++) {
        if (nodes->word[i]) {
            return false;
        }
    }
    return true;
}

/* The number of bits that the kernel reads: it takes one off. */
#define NODE_BITS (PIN_NODES + 1)

static void follow_locally(const struct pin_nodes *nodes)
{
    struct pin_nodes all;
    long code = profile_raw(SYS_set_mempolicy, MPOL_LOCAL, 0, 0, 0, 0, 0);
    if (code < 0) {
        pin_failure("SERVET_MEMBIND=local: set_mempolicy: %s", strerrordesc_np((int)-code));
        return;
    }
    /* From everywhere, which the kernel reads as "from nodes that exist", to the plan's; pages
     * there already stay. */
    memset(&all, 0xff, sizeof all);
    code = is_empty(nodes)
               ? 0
               : profile_raw(SYS_migrate_pages, 0, NODE_BITS, (long)&all, (long)nodes, 0, 0);
    if (code < 0) {
        pin_failure("SERVET_MEMBIND=local: migrate_pages: %s", strerrordesc_np((int)-code));
    }
}

void pin_memory_follow(const struct pin_options *options, const struct pin_nodes *nodes)
{
    switch (options->membind) {
    case PIN_MEMBIND_NONE:
        return;
    case PIN_MEMBIND_LOCAL:
        follow_locally(nodes);
        return;
    case PIN_MEMBIND_INTERLEAVE:
        break;
    case PIN_MEMBIND_UNKNOWN:
        pin_failure("SERVET_MEMBIND: expected local, interleave or none");
        return;
    }
    if (is_empty(nodes)) {
        return;
    }
    long code = profile_raw(SYS_set_mempolicy, MPOL_INTERLEAVE, (long)nodes, NODE_BITS, 0, 0, 0);
    if (code < 0) {
        pin_failure("SERVET_MEMBIND=interleave: set_mempolicy: %s", strerrordesc_np((int)-code));
    }
}

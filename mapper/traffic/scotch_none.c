/* A build without Scotch. */
#include <errno.h>

#include "mapper/traffic/traffic.h"

const bool map_scotch_built = false;

int map_place_by_scotch(struct map_traffic *traffic)
{
    (void)traffic;
    return -ENOTSUP;
}

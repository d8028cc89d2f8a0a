#include "own_topology.h"

#include <stdlib.h>
#include <string.h>

int own_topology(struct servet_profile **out, struct servet_error *error)
{
    static const char *const others[] = {"HWLOC_XMLFILE", "HWLOC_SYNTHETIC", "HWLOC_FSROOT"};
    const char *this_system = getenv("HWLOC_THISSYSTEM");
    bool meant = this_system && strcmp(this_system, "") != 0 && strcmp(this_system, "0") != 0;
    for (size_t i = 0; !meant && i < sizeof others / sizeof *others; i++) {
        unsetenv(others[i]);
    }
    return profile_from_hwloc(NULL, out, error);
}

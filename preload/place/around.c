/* The start of a plan: the environment, the launcher, the user's choices and the other programs of
 * the node. */
#include <string.h>

#include "preload/base/owner.h"
#include "preload/node/log.h"
#include "preload/node/registry.h"
#include "preload/place/places.h"
#include "preload/place/process.h"
#include "preload/place/report.h"

void pin_process_look_around(void)
{
    pin_launcher_read(pin_here.options.rebind, &pin_here.launcher);
    if (pin_here.launcher.node_rank == 0) {
        pin_options_say_refused(&pin_here.options);
    }
    pin_here.children = pin_here.start;
    pin_here.places_exported =
        pin_places_read(&pin_here.launcher, pin_owner_runtime_loaded(), &pin_here.children);
    pin_launcher_allowed(&pin_here.launcher, &pin_here.children, &pin_here.allowed);
    pin_here.users_choice = pin_here.places_exported ? NULL : pin_users_places();
    if (pin_here.users_choice && pin_owner_runtime_loaded()) {
        atomic_store(&pin_life.openmp_found, true);
    }
    pin_here.recalled_priority =
        pin_priority_cache_apply(&pin_here.options, NULL, &pin_here.recalled);
    if (pin_here.recalled_priority) {
        pin_report_choice(NULL, pin_here.options.verbose, &pin_here.recalled);
    }
    pin_here.pools =
        (struct pin_pools){.team = PIN_POOLS,
                           .main_place = PIN_NO_PLACE,
                           .rank = pin_here.launcher.local_size > 1 || pin_here.places_exported,
                           .registry = &pin_here.registry};
    if (!pin_here.options.no_registry) {
        int rc =
            pin_registry_open(&pin_here.registry, pin_here.options.registry, pin_here.launcher.job);
        if (rc == 0 && !pin_here.places_exported) {
            pin_registry_release(&pin_here.registry);
        }
        pin_log(rc < 0 && pin_here.options.verbose, "%s: %s; other jobs on this node are not seen",
                pin_here.registry.path, rc < 0 ? strerrordesc_np(-rc) : "");
        pin_log(rc == 0 && pin_here.registry.alone && pin_here.options.verbose, "%s",
                pin_why_alone());
    }
}

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "campaign_findings.h"
#include "conditions.h"
#include "machine_journal.h"

/* " cache sharing …", to be freed; NULL: none, or no memory. */
static char *names_of(unsigned probes)
{
    char *text = NULL;
    size_t length;
    FILE *stream = probes ? open_memstream(&text, &length) : NULL;
    for (size_t i = 0; stream && i < CAMPAIGN_NAMES; i++) {
        if (probes & 1u << i) {
            fprintf(stream, " %s", campaign_names[i]);
        }
    }
    return stream && fclose(stream) == 0 ? text : (free(text), NULL);
}

static int add_incomplete(const struct campaign *campaign, const struct findings *findings,
                          struct servet_profile *profile)
{
    char text[160];
    if (!campaign->incomplete) {
        return 0;
    }
    char *out = names_of(campaign->probes & ~findings->done);
    snprintf(text, sizeof text, "%s; not measured:%s", machine_strerror(campaign->incomplete), out ? out : "");
    free(out);
    return conditions_add(profile, "incomplete", text);
}

static int add_budget(const struct campaign *campaign, const struct findings *findings, struct servet_profile *profile)
{
    char text[160];
    char *out = names_of(findings->left_out), *shortened = names_of(findings->shortened);
    const struct probe_cache *caches = &findings->of[0].caches;
    size_t used =
        (size_t)snprintf(text, sizeof text, "%g s granted%s%s%s%s", campaign->budget_s, shortened ? "; cut short:" : "",
                         shortened ? shortened : "", out ? "; not measured:" : "", out ? out : "");
    if (findings->shortened & CAMPAIGN_CACHE && used < sizeof text && caches->sweeps + caches->coarse > 0) {
        snprintf(text + used, sizeof text - used, "; cache sizes from %u sweeps of all and %u of every other size",
                 caches->sweeps, caches->coarse);
    }
    int rc = out || shortened ? conditions_add(profile, "budget", text) : 0;
    free(out);
    free(shortened);
    return rc;
}

/* What memory really came in: the setting of the system is no promise. */
static int add_grant(const struct machine *machine, struct servet_profile *profile)
{
    char text[96];
    const struct machine_grant *grant = &machine->grant;
    if (machine->huge_page_bytes == 0) {
        return conditions_add(profile, "huge_pages", "none granted");
    }
    if (grant->asked_bytes == 0) {
        return 0;
    }
    snprintf(text, sizeof text, "%.0f %% of the %zu MiB that were asked for in them%s",
             100.0 * (double)grant->huge_bytes / (double)grant->asked_bytes, grant->asked_bytes >> 20,
             machine_denies_huge_pages(machine) ? "; taken for ordinary pages" : "");
    return conditions_add(profile, "huge_pages", text);
}

/* What was measured with smaller working sets than it should be. */
static int add_memory_limits(const struct findings *findings, struct servet_profile *profile)
{
    char text[128] = "";
    size_t used = 0;
    if (findings->of[0].caches.cut_short) {
        used = (size_t)snprintf(text, sizeof text, "curve ends at %llu MiB",
                                (unsigned long long)(findings->of[0].caches.largest_bytes >> 20));
    }
    if ((findings->done & CAMPAIGN_MEMORY) && findings->memory.cut_short) {
        snprintf(text + used, sizeof text - used, "%sbandwidth of arrays of %zu MiB, which caches may hold",
                 used ? "; " : "", findings->memory.array_bytes >> 20);
    }
    return text[0] ? conditions_add(profile, "memory_limited", text) : 0;
}

int campaign_add_conditions(const struct campaign *campaign, const struct findings *findings,
                            struct servet_profile *profile)
{
    bool native = strcmp(campaign->machine->name, "native") == 0;
    int rc = conditions_add(profile, "machine", campaign->machine->name);
    rc = rc < 0 || !native ? rc : conditions_of_this_machine(profile);
    if (rc == 0 && findings->numa.why[0]) {
        rc = conditions_add(profile, "numa_access", findings->numa.why);
    }
    rc = rc < 0 ? rc : add_budget(campaign, findings, profile);
    rc = rc < 0 ? rc : add_incomplete(campaign, findings, profile);
    size_t taken = machine_journal_taken(campaign->journal);
    if (rc == 0 && taken > 0) {
        char text[96];
        snprintf(text, sizeof text, "%zu measurements are of an earlier, interrupted run", taken);
        rc = conditions_add(profile, "resumed", text);
    }
    if (rc == 0 && campaign->largest_bytes > 0 && findings->of[0].caches.count > 0) {
        char text[64];
        snprintf(text, sizeof text, "%zu KiB, a limit set by the user", campaign->largest_bytes >> 10);
        rc = conditions_add(profile, "largest_working_set", text);
    }
    rc = rc < 0 || !native ? rc : add_grant(campaign->machine, profile);
    return rc < 0 ? rc : add_memory_limits(findings, profile);
}

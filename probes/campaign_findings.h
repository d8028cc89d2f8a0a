/* What the probes of one campaign have found so far; of campaign.h's rooms alone. */
#ifndef SERVET_PROBES_CAMPAIGN_FINDINGS_H
#define SERVET_PROBES_CAMPAIGN_FINDINGS_H

#include "campaign.h"
#include "plan.h"
#include "result.h"
#include "result_kinds.h"

struct findings {
    struct probe probe;
    struct profile_class *node_class;
    struct kinds kinds;
    struct kind_findings of[KINDS_MAX];
    struct probe_memory memory;
    struct probe_numa numa;
    struct profile_communication messages;
    char layer_note[640];
    struct plan plan;
    double until_s;     /* when the budget of all probes is used up, on the machine's clock; 0: never */
    unsigned left_out;  /* probes that the budget left no time for */
    unsigned shortened; /* and those that it cut short */
    unsigned done;
};

/* Under what conditions it was measured, and what of it was left out or cut short. 0 or -ENOMEM. */
int campaign_add_conditions(const struct campaign *campaign, const struct findings *findings,
                            struct servet_profile *profile);

#endif

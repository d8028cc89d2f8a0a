/* What libservet answers of messages and cache lines between two PUs, and how sure that is. */
#include <errno.h>

#include "profile/libservet/answers.h"

static bool find_link(const servet_profile *profile, uint32_t pu_a, uint32_t pu_b,
                      struct profile_link *link)
{
    struct profile_place a, b;
    return profile_locate(profile, pu_a, &a) && profile_locate(profile, pu_b, &b) &&
           profile_link_of(profile, &a, &b, link);
}

double servet_message_seconds(const servet_profile *profile, uint32_t pu_a, uint32_t pu_b,
                              uint64_t bytes)
{
    struct profile_link link;
    if (!profile->measured || !find_link(profile, pu_a, pu_b, &link)) {
        return 0;
    }
    return profile_message_seconds(link.layer, link.communication->message_bytes, (double)bytes);
}

double servet_pair_seconds(const servet_profile *profile, uint32_t pu_a, uint32_t pu_b,
                           uint64_t *bytes)
{
    struct profile_place a, b;
    if (!profile_find_pair(profile, pu_a, pu_b, &a, &b)) {
        return 0;
    }
    const struct profile_communication *messages = &a.node_class->communication;
    double seconds = profile_pair_figure(messages->message_times, messages->message_time_count,
                                         a.os_index, b.os_index);
    if (seconds > 0 && bytes) {
        *bytes = messages->message_bytes;
    }
    return seconds;
}

/* Of the pair itself; 0: it was not measured. *layer: the pair's, or NULL. */
static double find_line(const servet_profile *profile, uint32_t pu_a, uint32_t pu_b,
                        const struct profile_layer **layer)
{
    struct profile_place a, b;
    *layer = NULL;
    if (!profile_find_pair(profile, pu_a, pu_b, &a, &b)) {
        return 0;
    }
    const struct profile_communication *lines = &a.node_class->communication;
    *layer = profile_layer_of(lines, a.os_index, b.os_index, NULL);
    return profile_pair_figure(lines->line_times, lines->line_time_count, a.os_index, b.os_index);
}

double servet_line_seconds(const servet_profile *profile, uint32_t pu_a, uint32_t pu_b)
{
    const struct profile_layer *layer;
    double own = find_line(profile, pu_a, pu_b, &layer);
    return own > 0 ? own : layer ? layer->line_seconds : 0;
}

double servet_messages_slower(const servet_profile *profile, uint32_t pu_a, uint32_t pu_b,
                              uint32_t messages)
{
    struct profile_link link;
    if (!messages || !profile->measured || !find_link(profile, pu_a, pu_b, &link) ||
        link.layer->concurrency_count < 2) {
        return 0;
    }
    return profile_messages_slower(link.layer, messages);
}

int servet_message_layer(const servet_profile *profile, uint32_t pu_a, uint32_t pu_b)
{
    struct profile_link link;
    return find_link(profile, pu_a, pu_b, &link) ? (int)link.rank - 1 : -1;
}

int servet_message_quality(const servet_profile *profile, uint32_t pu_a, uint32_t pu_b,
                           struct servet_quality *out)
{
    struct profile_link link;
    struct profile_place a, b;
    if (!profile_locate(profile, pu_a, &a) || !profile_locate(profile, pu_b, &b) ||
        !profile_link_of(profile, &a, &b, &link)) {
        return -ENOENT;
    }
    bool inside = a.node == b.node;
    const struct profile_relation *measured = &link.communication->measured;
    bool listed =
        measured->group_count + measured->pair_count == 0 ||
        profile_related(measured, inside ? a.os_index : a.node, inside ? b.os_index : b.node);
    return profile_answer(&link.layer->quality, listed, out);
}

int servet_line_quality(const servet_profile *profile, uint32_t pu_a, uint32_t pu_b,
                        struct servet_quality *out)
{
    const struct profile_layer *layer;
    double own = find_line(profile, pu_a, pu_b, &layer);
    if (!layer || !(layer->line_seconds > 0)) {
        return -ENOENT;
    }
    return profile_answer_evidence(&layer->line_quality, own > 0, out);
}

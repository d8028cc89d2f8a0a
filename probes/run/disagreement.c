/* Why the measured size of a cache is not the declared one. Each explanation is a rule with the
 * evidence it asks for; without evidence nothing is explained away. */
#include "probes/run/run.h"

#include "profile/text/text.h"

/* Sizes closer than this are called the same: grids have eight sizes an octave. */
static const double agreement = 1.1;
/* Levels from here on are those that the cores of a chip share on the machines that we know. */
static const uint32_t usually_shared = 3;

enum verdict {
    NO,
    POSSIBLE, /* others are said as well */
    SETTLED,  /* that accounts for all of it */
};

static bool differ(double a, double b)
{
    return a > agreement * b || b > agreement * a;
}

static bool same(uint64_t a, uint64_t b)
{
    return a > 0 && b > 0 && !differ((double)a, (double)b);
}

static bool is_power_of_two(uint64_t bytes)
{
    return (bytes & (bytes - 1)) == 0;
}

static bool is_smaller(const struct disagreement *d)
{
    return d->measured_bytes < d->declared_bytes;
}

/* Less than a factor of two apart: a power of two among them is the next one to the other. */
static bool are_next(const struct disagreement *d)
{
    return d->measured_bytes < 2 * d->declared_bytes && d->declared_bytes < 2 * d->measured_bytes;
}

/* -- rules, each with what it says -- */

static enum verdict interval(const struct disagreement *d)
{
    return d->low_bytes <= d->declared_bytes && d->declared_bytes <= d->high_bytes ? SETTLED : NO;
}

static void say_interval(const struct disagreement *d, FILE *stream)
{
    (void)d;
    fputs("the measurement leaves room for the declared size", stream);
}

static uint64_t allocated(const struct disagreement *d)
{
    return d->declared_bytes / d->share.of * d->share.parts;
}

static enum verdict partitioned(const struct disagreement *d)
{
    if (!is_smaller(d) || d->share.of == 0 || d->share.parts >= d->share.of) {
        return NO;
    }
    return same(d->measured_bytes, allocated(d)) ? SETTLED : POSSIBLE;
}

static void say_partitioned(const struct disagreement *d, FILE *stream)
{
    fprintf(stream, "%u of %u ways are allocated to this task by resctrl: %s", d->share.parts,
            d->share.of, profile_figure_bytes(allocated(d)).text);
}

static enum verdict in_parts(const struct disagreement *d)
{
    return d->parts > 1 && same(d->measured_bytes * d->parts, d->declared_bytes) ? SETTLED : NO;
}

static void say_in_parts(const struct disagreement *d, FILE *stream)
{
    fprintf(stream, "declared is the sum of %zu caches, which were found apart", d->parts);
}

static enum verdict merged(const struct disagreement *d)
{
    return d->merged > 1 && same(d->measured_bytes, d->declared_bytes * d->merged) ? SETTLED : NO;
}

static void say_merged(const struct disagreement *d, FILE *stream)
{
    fprintf(stream, "%zu declared caches, of that size each, were found to be one", d->merged);
}

static enum verdict between_sizes_tried(const struct disagreement *d)
{
    return is_smaller(d) && d->next_bytes >= d->declared_bytes ? SETTLED : NO;
}

static void say_between_sizes_tried(const struct disagreement *d, FILE *stream)
{
    bool powers = is_power_of_two(d->measured_bytes) && d->next_bytes == 2 * d->measured_bytes;
    fprintf(stream, "no size between the two was tried%s", powers ? ", only powers of two" : "");
}

static enum verdict no_geometry(const struct disagreement *d)
{
    uint64_t all_ways = (uint64_t)d->line_bytes * d->ways;
    return all_ways > 0 && d->declared_bytes % all_ways != 0 ? POSSIBLE : NO;
}

static void say_no_geometry(const struct disagreement *d, FILE *stream)
{
    fprintf(stream,
            "the declared size is no whole number of sets of %u ways of %u bytes, so one of them "
            "is not right",
            d->ways, d->line_bytes);
}

/* One of the two is a power of two, next to the other. */
static enum verdict rounded(const struct disagreement *d)
{
    bool one = is_power_of_two(d->declared_bytes) != is_power_of_two(d->measured_bytes);
    return one && are_next(d) ? POSSIBLE : NO;
}

static void say_rounded(const struct disagreement *d, FILE *stream)
{
    bool declared = is_power_of_two(d->declared_bytes);
    fprintf(stream, "the %s size is the power of two next to the %s one and may be rounded",
            declared ? "declared" : "measured", declared ? "measured" : "declared");
}

static bool may_have_neighbours(const struct disagreement *d)
{
    return is_smaller(d) && (d->shared || d->level >= usually_shared);
}

static enum verdict guests(const struct disagreement *d)
{
    return d->virtual && may_have_neighbours(d) ? POSSIBLE : NO;
}

static void say_guests(const struct disagreement *d, FILE *stream)
{
    (void)d;
    fputs(
        "a virtual machine is told the size of its host's cache, part of which neighbours may hold",
        stream);
}

static enum verdict load(const struct disagreement *d)
{
    return d->busy && may_have_neighbours(d) ? POSSIBLE : NO;
}

static void say_load(const struct disagreement *d, FILE *stream)
{
    (void)d;
    fputs("other programs ran on this machine and may hold part of it", stream);
}

static enum verdict victims(const struct disagreement *d)
{
    bool tells = d->before_bytes > 0 &&
                 differ((double)(d->declared_bytes + d->before_bytes), (double)d->declared_bytes);
    return tells && same(d->measured_bytes, d->declared_bytes + d->before_bytes) ? POSSIBLE : NO;
}

static void say_victims(const struct disagreement *d, FILE *stream)
{
    fprintf(stream,
            "it is as much as the level before it and the declared size together, so it may be "
            "exclusive and "
            "hold what the %s do not",
            profile_figure_bytes(d->before_bytes).text);
}

static enum verdict hidden(const struct disagreement *d)
{
    return d->virtual && !is_smaller(d) ? POSSIBLE : NO;
}

static void say_hidden(const struct disagreement *d, FILE *stream)
{
    (void)d;
    fputs("a virtual machine may be told of other caches than its host has", stream);
}

/* In the order in which they are asked: what accounts for the difference comes first. */
static const struct rule {
    enum verdict (*holds)(const struct disagreement *d);
    void (*say)(const struct disagreement *d, FILE *stream);
} rules[] = {
    {interval, say_interval},
    {partitioned, say_partitioned},
    {in_parts, say_in_parts},
    {merged, say_merged},
    {between_sizes_tried, say_between_sizes_tried},
    {no_geometry, say_no_geometry},
    {rounded, say_rounded},
    {guests, say_guests},
    {load, say_load},
    {victims, say_victims},
    {hidden, say_hidden},
};

bool probe_disagreement_is_one(uint64_t measured_bytes, uint64_t declared_bytes)
{
    return measured_bytes > 0 && declared_bytes > 0 && !same(measured_bytes, declared_bytes);
}

void probe_disagreement_explain(const struct disagreement *disagreement, FILE *stream)
{
    fprintf(stream, "measured %s, declared %s",
            profile_figure_bytes(disagreement->measured_bytes).text,
            profile_figure_bytes(disagreement->declared_bytes).text);
    const char *separator = ": ";
    enum verdict verdict = NO;
    for (size_t i = 0; i < sizeof rules / sizeof *rules && verdict != SETTLED; i++) {
        enum verdict this = rules[i].holds(disagreement);
        if (this != NO) {
            verdict = this;
            fputs(separator, stream);
            rules[i].say(disagreement, stream);
            separator = "; ";
        }
    }
    if (verdict == NO) {
        fputs(": nothing that is known of the machine explains it", stream);
    }
}

/* A profile as one page that needs nothing else: no network, no script. */
#ifndef SERVET_REPORT_HTML_H
#define SERVET_REPORT_HTML_H

#include <stdio.h>

#include "profile/model.h"

struct report {
    const struct servet_profile *profile;
    const char *source; /* file it is from, or NULL: what the operating system declares */
    size_t workers;     /* show where so many workers would go; 0: no mapping */
};

/* The page as a new string. 0; -ENOENT: no gnuplot; -EIO: it failed; -ENOMEM. A picture that lstopo
 * cannot draw is a sentence in the page, not a failure. */
int report_html(const struct report *report, char **out, size_t *length,
                struct servet_error *error);

/* The plots and the pictures of the topology as PNG files in `folder`, which is made if need be.
 * All of them are drawn before the first is written. 0 and how many, and in left_out->text, which
 * is empty otherwise, what could not be drawn (there is no lstopo); errors as above, or the -errno
 * of writing. */
int report_png(const struct report *report, const char *folder, size_t *count,
               struct servet_error *left_out, struct servet_error *error);

/* The part of the page that shows the machine as boxes, and where workers would go. */

/* Text between tags or in an attribute. */
void report_html_text(FILE *out, const char *text);

/* 0; -EINVAL (more workers than can be mapped); -ENOMEM. */
int report_html_topology(const struct report *report, FILE *out, struct servet_error *error);

#endif

/* The part of the page that shows the machine as boxes, and where workers would go. */
#ifndef SERVET_REPORT_HTML_MAP_H
#define SERVET_REPORT_HTML_MAP_H

#include "html.h"

#include <stdio.h>

/* Text between tags or in an attribute. */
void html_text(FILE *out, const char *text);

/* 0; -EINVAL (more workers than can be mapped); -ENOMEM. */
int html_topology(const struct report *report, FILE *out, struct servet_error *error);

#endif

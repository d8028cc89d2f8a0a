/* All plots of a profile, in the order of the page. */
#ifndef SERVET_REPORT_PLOTS_H
#define SERVET_REPORT_PLOTS_H

#include "report/html.h"
#include "report/plot.h"

int report_plots_of(const struct servet_profile *profile, struct plot_list *out,
                    struct servet_error *error);

#endif

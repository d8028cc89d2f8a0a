/* What measurements of an interrupted run must have in common with those that go on with them, beside the options. */
#ifndef SERVET_PROBES_RUN_IDENTITY_H
#define SERVET_PROBES_RUN_IDENTITY_H

/* One line without blanks at its ends. Of the native machine: the kernel's release and what it does about huge pages,
 * as read below `root` ("" for this machine). Of "simulated:FILE": a checksum of the file. To be freed; NULL: no
 * memory. */
char *run_identity(const char *root, const char *machine);

#endif

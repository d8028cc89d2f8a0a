/* The first line of a file: what the kernel says in /proc and /sys is mostly one. */
#ifndef SERVET_PROFILE_BASE_FIRST_LINE_H
#define SERVET_PROFILE_BASE_FIRST_LINE_H

#include <stdbool.h>

/* Without its end of line, cut to `size` bytes with the 0. False, and "": it cannot be read. */
bool profile_first_line(const char *path, char *line, int size);

#endif

/* The first line of a file: what the kernel says in /proc and /sys is mostly one. */
#include "profile/base/first_line.h"

#include <stdio.h>
#include <string.h>

bool profile_first_line(const char *path, char *line, int size)
{
    FILE *file = fopen(path, "re");
    bool ok = file && fgets(line, size, file);
    if (file) {
        fclose(file);
    }
    line[ok ? strcspn(line, "\n") : 0] = '\0';
    return ok;
}

/* without_mbind COMMAND [ARGUMENT...]: runs it in a sandbox in which memory cannot be placed. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/probes/forbid_mbind.h"

int main(int argc, char **argv)
{
    int rc = forbid_mbind();
    if (rc < 0 || argc < 2) {
        fprintf(stderr, "without_mbind: %s\n", rc < 0 ? strerror(-rc) : "expected a command");
        return 2;
    }
    execvp(argv[1], argv + 1);
    fprintf(stderr, "without_mbind: %s: %s\n", argv[1], strerror(errno));
    return 2;
}

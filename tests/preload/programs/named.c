/* A thread with a name that breaks lines and clears a terminal, then another folder:  named
 * [FOLDER] */
#include "threads.h"

static void *renames_itself(void *argument)
{
    pthread_setname_np(pthread_self(), "x\n0 root\033[2J");
    return argument;
}

int main(int argc, char **argv)
{
    run_thread(renames_itself, NULL);
    return argc > 1 ? chdir(argv[1]) : 0;
}

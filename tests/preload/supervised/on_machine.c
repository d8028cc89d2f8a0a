/* Runs a command on a machine that is not here: on_machine PUS COMMAND [ARGUMENT ...]. Its exit
 * status is the command's; 77: no supervisor here. */
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/preload/supervised/supervisor.h"

static void run(void *command)
{
    char **words = command;
    execvp(words[0], words);
    _exit(127);
}

int main(int argc, char **argv)
{
    siginfo_t end = {0};
    if (argc < 3) {
        return 2;
    }
    const pid_t child = supervisor_begin((uint32_t)atoi(argv[1]), 0, run, &argv[2]);
    waitid(P_PID, (id_t)child, &end, WEXITED | WNOWAIT);
    supervisor_end();
    return end.si_code == CLD_EXITED ? end.si_status : 1;
}

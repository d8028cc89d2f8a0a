/* A thread with a name that breaks lines and clears a terminal, then another folder:  named
 * [FOLDER] */
#include <pthread.h>
#include <unistd.h>

static void *nothing(void *argument)
{
    pthread_setname_np(pthread_self(), "x\n0 root\033[2J");
    return argument;
}

int main(int argc, char **argv)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, nothing, NULL) != 0) {
        return 4;
    }
    pthread_join(thread, NULL);
    return argc > 1 ? chdir(argv[1]) : 0;
}

/* Makes two threads and says how many there were: "made N". It takes no memory itself. */
#include <pthread.h>
#include <unistd.h>

static void *nothing(void *argument)
{
    return argument;
}

int main(void)
{
    char line[] = "made 0\n";
    pthread_t thread;
    for (int i = 0; i < 2; i++) {
        if (pthread_create(&thread, NULL, nothing, NULL) == 0) {
            pthread_join(thread, NULL);
            line[5]++;
        }
    }
    return write(STDOUT_FILENO, line, sizeof line - 1) > 0 ? 0 : 1;
}

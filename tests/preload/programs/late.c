/* Makes a thread, and only then loads the OpenMP objects it is given, one runtime after the other:
 * late OBJECT… */
#include <dlfcn.h>

#include "threads.h"

static void *brief(void *argument)
{
    report_worker(9, 1);
    return argument;
}

int main(int argc, char **argv)
{
    run_thread(brief, NULL);
    report_worker(9, 0);
    for (int i = 1; i < argc; i++) {
        void *object = dlopen(argv[i], RTLD_NOW | RTLD_LOCAL);
        void (*run)(int) = object ? (void (*)(int))dlsym(object, "run_team") : NULL;
        if (!run) {
            fprintf(stderr, "%s\n", dlerror());
            return 5;
        }
        run(i - 1);
    }
    return 0;
}

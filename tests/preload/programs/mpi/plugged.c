/* Opens a plugin as interpreters do (its MPI library is in no scope but the plugin's) and calls its
 * run(). */
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    void *plugin = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
    void (*run)(void) = plugin ? (void (*)(void))dlsym(plugin, "run") : NULL;
    if (!run) {
        fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    run();
    return 0;
}

/* Where memory is:  pages NODE [BYTES]   touches memory on NODE, becomes a rank, and touches more;
 * at the end that many bytes.
 *
 *   early NODE:PAGES …    the first memory, after the entry
 *   fresh NODE:PAGES …    the other */
#include <linux/mempolicy.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "report.h"

enum { PAGES = 256, NODES = 64 };

int MPI_Init(void *count, void *values, void *unused, void *unused_too);

static long page_size;

static char *touch(void)
{
    char *memory = mmap(NULL, (size_t)(PAGES * page_size), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        exit(4);
    }
    madvise(memory, (size_t)(PAGES * page_size), MADV_NOHUGEPAGE);
    for (long i = 0; i < PAGES; i++) {
        memory[i * page_size] = 1;
    }
    return memory;
}

static void show(const char *what, char *memory)
{
    void *page[PAGES];
    int node[PAGES], count[NODES] = {0}, nowhere = 0;
    char line[1024];
    for (long i = 0; i < PAGES; i++) {
        page[i] = memory + i * page_size;
    }
    if (syscall(SYS_move_pages, 0, PAGES, page, NULL, node, 0) != 0) {
        exit(77);
    }
    for (int i = 0; i < PAGES; i++) {
        if (node[i] >= 0 && node[i] < NODES) {
            count[node[i]]++;
        } else {
            nowhere = node[i];
        }
    }
    size_t used = (size_t)snprintf(line, sizeof line, "%s", what);
    for (int i = 0; i < NODES; i++) {
        if (count[i] > 0) {
            used += (size_t)snprintf(line + used, sizeof line - used, " %d:%d", i, count[i]);
        }
    }
    if (nowhere != 0) {
        used +=
            (size_t)snprintf(line + used, sizeof line - used, " nowhere: %s", strerror(-nowhere));
    }
    report_line("%s\n", line);
}

int main(int argc, char **argv)
{
    unsigned long node = 1ul << (argc > 1 ? atoi(argv[1]) : 0);
    page_size = sysconf(_SC_PAGESIZE);
    if (syscall(SYS_set_mempolicy, MPOL_BIND, &node, 8 * sizeof node + 1) != 0) {
        return 77;
    }
    char *early = touch();
    syscall(SYS_set_mempolicy, MPOL_DEFAULT, NULL, 0);
    MPI_Init(NULL, NULL, NULL, NULL);
    show("early", early);
    show("fresh", touch());
    size_t more = argc > 2 ? strtoul(argv[2], NULL, 10) : 0;
    char *large = malloc(more + 1);
    if (!large) {
        return 4;
    }
    memset(large, 1, more + 1);
    return large[more / 2] != 1;
}

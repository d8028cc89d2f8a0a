/* The MPI of a program, from its ELF file, and of a launcher, from what it says of itself.
 *
 * Open MPI's library is libmpi.so.20 and later; libmpi.so.12 is the ABI that MPICH and its
 * relatives share (https://www.mpich.org/abi), and Debian calls MPICH's libmpich.so.12. Only the
 * program's own needs are read: what a library of its needs in turn depends on where the loader
 * looks. */
#include "benchmarks/bench/launcher.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "benchmarks/bench/run.h"
#include "benchmarks/bench/tools.h"

#define MPICH_ABI 12         /* so-version that MPICH's ABI agreement fixes */
#define VERSION_SECONDS 20.0 /* a launcher that takes longer to say its version is of no use */

/* -- the program -- */

struct image {
    const unsigned char *bytes;
    size_t size;
};

static const void *at(const struct image *image, uint64_t offset, uint64_t size)
{
    return offset <= image->size && size <= image->size - offset ? image->bytes + offset : NULL;
}

/* Where in the file an address of the running program lies; SIZE_MAX: nowhere. */
static size_t offset_of(const ElfW(Phdr) * segments, size_t count, uint64_t address)
{
    for (size_t i = 0; i < count; i++) {
        const ElfW(Phdr) *s = &segments[i];
        if (s->p_type == PT_LOAD && address >= s->p_vaddr && address - s->p_vaddr < s->p_filesz) {
            return s->p_offset + (address - s->p_vaddr);
        }
    }
    return SIZE_MAX;
}

static void look_at(const char *library, struct bench_linked *out)
{
    static const char *const runtimes[] = {"libgomp.so", "libomp.so", "libiomp5.so"};
    for (size_t i = 0; i < sizeof runtimes / sizeof *runtimes; i++) {
        out->openmp |= strncmp(library, runtimes[i], strlen(runtimes[i])) == 0;
    }
    enum bench_mpi mpi = BENCH_MPI_UNKNOWN;
    const char *version = strstr(library, ".so.");
    if (strncmp(library, "libmpich", 8) == 0) {
        mpi = BENCH_MPI_MPICH;
    } else if (strncmp(library, "libmpi.so", 9) == 0 ||
               strncmp(library, "libmpi_mpifh.", 13) == 0 ||
               strncmp(library, "libmpifort.", 11) == 0) {
        mpi = version && atoi(version + 4) == MPICH_ABI ? BENCH_MPI_MPICH : BENCH_MPI_OPEN;
    }
    if (mpi != BENCH_MPI_UNKNOWN && out->mpi == BENCH_MPI_UNKNOWN) {
        out->mpi = mpi;
        snprintf(out->library, sizeof out->library, "%s", library);
    }
}

static void read_needed(const struct image *image, struct bench_linked *out)
{
    const ElfW(Ehdr) *head = at(image, 0, sizeof *head);
    const unsigned char kind = sizeof(void *) == 8 ? ELFCLASS64 : ELFCLASS32;
    if (!head || memcmp(head->e_ident, ELFMAG, SELFMAG) != 0 || head->e_ident[EI_CLASS] != kind) {
        return;
    }
    const ElfW(Phdr) *segments = at(image, head->e_phoff, head->e_phnum * sizeof *segments);
    const ElfW(Dyn) *entries = NULL;
    size_t count = 0;
    for (size_t i = 0; segments && i < head->e_phnum; i++) {
        if (segments[i].p_type == PT_DYNAMIC) {
            entries = at(image, segments[i].p_offset, segments[i].p_filesz);
            count = segments[i].p_filesz / sizeof *entries;
        }
    }
    size_t names = SIZE_MAX;
    for (size_t i = 0; entries && i < count; i++) {
        if (entries[i].d_tag == DT_STRTAB) {
            names = offset_of(segments, head->e_phnum, entries[i].d_un.d_ptr);
        }
    }
    for (size_t i = 0; entries && names < image->size && i < count; i++) {
        if (entries[i].d_tag == DT_NEEDED && entries[i].d_un.d_val < image->size - names) {
            const char *name = (const char *)image->bytes + names + entries[i].d_un.d_val;
            if (memchr(name, '\0',
                       image->size - (size_t)((const unsigned char *)name - image->bytes))) {
                look_at(name, out);
            }
        }
    }
}

void bench_linked_with(const char *path, struct bench_linked *out)
{
    *out = (struct bench_linked){0};
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat status;
    if (fd < 0) {
        return;
    }
    if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_size > 0) {
        struct image image = {.size = (size_t)status.st_size};
        void *bytes = mmap(NULL, image.size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (bytes != MAP_FAILED) {
            image.bytes = bytes;
            read_needed(&image, out);
            munmap(bytes, image.size);
        }
    }
    close(fd);
}

/* -- the launcher -- */

static const char *const names[] = {
    [BENCH_MPI_UNKNOWN] = "an MPI that is not known here",
    [BENCH_MPI_OPEN] = "Open MPI",
    [BENCH_MPI_MPICH] = "MPICH or a relative of it",
};

/* Whose launcher that is, by what it answers to --version. */
static enum bench_mpi kind_of(const char *launcher)
{
    struct words argv = {0};
    const struct words nothing = {0};
    struct bench_run run;
    bench_words_add(&argv, "%s", launcher);
    bench_words_add(&argv, "--version");
    bench_run(&argv, &nothing, 1, VERSION_SECONDS, &run);
    enum bench_mpi kind = BENCH_MPI_UNKNOWN;
    if (strstr(run.out, "OpenRTE") || strstr(run.out, "Open MPI")) {
        kind = BENCH_MPI_OPEN;
    } else if (strstr(run.out, "HYDRA") || strstr(run.out, "Intel(R) MPI")) {
        kind = BENCH_MPI_MPICH;
    }
    bench_run_free(&run);
    bench_words_free(&argv);
    return kind;
}

static bool fits(enum bench_mpi kind, enum bench_mpi wanted)
{
    return wanted == BENCH_MPI_UNKNOWN || kind == BENCH_MPI_UNKNOWN || kind == wanted;
}

int bench_launcher(const struct bench_linked *linked, enum bench_mpi *kind, char **out,
                   struct servet_error *error)
{
    /* Debian's own names first: they stay when mpirun is another MPI's. */
    static const char *const open_mpi[] = {"mpirun.openmpi", "mpirun", "mpiexec", NULL};
    static const char *const mpich[] = {"mpirun.mpich", "mpiexec.hydra", "mpirun", "mpiexec", NULL};
    const char *chosen = getenv("SERVET_BENCH_MPIRUN");
    if (chosen && *chosen) {
        char *found = bench_tools_find(chosen);
        if (!found) {
            return profile_error(error, -ENOENT, "SERVET_BENCH_MPIRUN: %s cannot be run", chosen);
        }
        *kind = kind_of(found);
        if (!fits(*kind, linked->mpi)) {
            free(found);
            return profile_error(error, -EINVAL,
                                 "SERVET_BENCH_MPIRUN: %s is of %s, but the program needs %s: "
                                 "expected a launcher of %s",
                                 chosen, names[*kind], linked->library, names[linked->mpi]);
        }
        *out = found;
        return 0;
    }
    const char *const *candidates = linked->mpi == BENCH_MPI_MPICH ? mpich : open_mpi;
    for (size_t i = 0; candidates[i]; i++) {
        char *found = bench_tools_find(candidates[i]);
        if (found && fits(*kind = kind_of(found), linked->mpi)) {
            *out = found;
            return 0;
        }
        free(found);
    }
    return profile_error(error, -ENOENT,
                         "no launcher of %s is installed, which %s needs: expected mpirun, or its "
                         "path in SERVET_BENCH_MPIRUN",
                         linked->library[0] ? names[linked->mpi] : "any MPI",
                         linked->library[0] ? linked->library : "--ranks");
}

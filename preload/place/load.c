/* A profile, read with memory of the shim's own.
 *
 * When malloc fails midway, the JSON library (jansson 2.14) frees what it has not made and ends the
 * program; and the program is somebody else's, perhaps at the limit of its memory. So jansson gets
 * a piece of memory that is mapped beforehand, as much as a file of that size can need, from which
 * it takes and to which it gives nothing back. A file that needs more is refused: the piece is
 * dropped as a whole, wherever jansson is at that moment.
 *
 * One at a time: plans are made by one thread of a process.
 */
#include <errno.h>
#include <jansson.h>
#include <setjmp.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "preload/place/place.h"

/* jansson's json_dumpfd & co. are never used here, but json_loadf() compares its argument with
 * `stdin`, and a copy relocation of that variable is what keeps Debian's libjansson.a (not position
 * independent there) out of a shared object. With -Wl,--wrap=stdin the archive refers to this
 * hidden variable, which no FILE is ever equal to. */
extern FILE *__wrap_stdin;
FILE *__wrap_stdin;

/* Bytes for each byte of the file: the fixtures' profiles take 5 to 9, a list of pairs without
 * blanks 33; empty objects, 76, are no profile. Only what is touched is real. */
#define MEMORY_PER_BYTE 64u
#define LEAST_MEMORY ((size_t)64 << 10)
/* What profile_load_node() refuses by its size needs no memory. */
#define MOST_BYTES ((size_t)16 << 20)
#define ALIGNMENT 16u

static struct {
    char *base;
    size_t used, size;
    jmp_buf exhausted;
} arena;

static void *take(size_t bytes)
{
    size_t room = (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    if (room < bytes || room > arena.size - arena.used) {
        longjmp(arena.exhausted, 1);
    }
    void *taken = arena.base + arena.used;
    arena.used += room;
    return taken;
}

static void give_back(void *taken)
{
    (void)taken;
}

static size_t memory_for(const char *path)
{
    struct stat about;
    size_t bytes = stat(path, &about) == 0 && about.st_size > 0 ? (size_t)about.st_size : 0;
    return LEAST_MEMORY + MEMORY_PER_BYTE * (bytes < MOST_BYTES ? bytes : MOST_BYTES);
}

int pin_profile_load(const char *path, struct servet_profile **out, struct servet_error *error)
{
    arena.size = memory_for(path);
    arena.used = 0;
    arena.base = pin_pages_map(arena.size);
    if (!arena.base) {
        return profile_error(error, -ENOMEM, "%s: %s", path, strerrordesc_np(ENOMEM));
    }
    json_set_alloc_funcs(take, give_back);
    /* Any fixed number: jansson would read /dev/urandom for one, and what an attacker could do with
     * it is make a file that only he and root can write slow to read. */
    json_object_seed(1);
    int rc = setjmp(arena.exhausted) == 0
                 ? profile_load_node(path, out, error) /* of a cluster's, what this node needs */
                 : profile_error(error, -ENOMEM, "%s: takes more memory than a profile of its size",
                                 path);
    pin_pages_unmap(arena.base, arena.size);
    return rc;
}

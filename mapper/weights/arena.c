/* The memory of one mapping: many small arrays that are all given back at once, so that no way out
 * of a function has anything to free. */
#include <errno.h>
#include <stdalign.h>
#include <stdint.h>
#include <stdlib.h>

#include "mapper/weights/weights.h"

/* Enough for everything that a node of a few hundred PUs needs; larger arrays get a chunk of their
 * own. */
#define CHUNK_BYTES ((size_t)16 << 10)

/* A cache line. */
#define ALIGNMENT ((size_t)64)

struct map_arena_chunk {
    struct map_arena_chunk *next;
    size_t used, size;
    alignas(64) unsigned char bytes[];
};

static struct map_arena_chunk *add_chunk(struct map_arena *arena, size_t bytes)
{
    size_t size = bytes > CHUNK_BYTES ? bytes : CHUNK_BYTES;
    void *memory;
    if (posix_memalign(&memory, ALIGNMENT, sizeof(struct map_arena_chunk) + size) != 0) {
        return NULL;
    }
    struct map_arena_chunk *chunk = memory;
    chunk->next = arena->chunks;
    chunk->used = 0;
    chunk->size = size;
    arena->chunks = chunk;
    return chunk;
}

void *map_arena_get(struct map_arena *arena, size_t count, size_t size)
{
    bool fits = !size || count <= (SIZE_MAX / 4) / size;
    size_t bytes = fits ? (count * size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT : 0;
    struct map_arena_chunk *chunk = arena->chunks;
    if (!chunk || chunk->size - chunk->used < bytes) {
        chunk = add_chunk(arena, bytes);
    }
    if (!chunk || !fits) {
        arena->is_short = true;
        return NULL;
    }
    unsigned char *result = chunk->bytes + chunk->used;
    chunk->used += bytes;
    __builtin_memset(result, 0, bytes);
    return result;
}

int map_out_of_memory(int rc, struct servet_error *error)
{
    return rc == -ENOMEM ? profile_error(error, rc, "out of memory") : rc;
}

void map_arena_free(struct map_arena *arena)
{
    while (arena->chunks) {
        struct map_arena_chunk *chunk = arena->chunks;
        arena->chunks = chunk->next;
        free(chunk);
    }
}

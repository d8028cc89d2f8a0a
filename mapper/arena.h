/* Memory of one mapping: many small arrays that are all given back at once. */
#ifndef SERVET_MAPPER_ARENA_H
#define SERVET_MAPPER_ARENA_H

#include <stddef.h>

struct map_arena {
    struct map_arena_chunk *chunks;
};

/* Room for `count` things of `size` bytes, zeroed, aligned for any of our types; NULL when memory is short. Zero
 * things give a pointer that must not be followed. */
void *map_arena_get(struct map_arena *arena, size_t count, size_t size);
void map_arena_free(struct map_arena *arena);

#endif

/* Text in memory, written through a FILE. */
#ifndef SERVET_PROFILE_BASE_STREAM_H
#define SERVET_PROFILE_BASE_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* As open_memstream(3), but the text and its size are there only when fclose() has answered 0;
 * until then, and when memory has run out, they are NULL and 0. The text ends with a NUL that does
 * not count; free() it. ftell() says how long it is so far; it cannot be moved. NULL: no memory. */
FILE *profile_stream_open(char **text, size_t *size);

#endif

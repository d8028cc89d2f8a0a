/* Text in memory, written through a FILE. glibc's open_memstream() does not tell when memory runs
 * out: neither ferror() nor fclose() says so, and the text lacks its end, or is none. */
#include "profile/base/file.h"

#include <stdlib.h>
#include <string.h>
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/lsan_interface.h>
#endif

struct stream {
    char **text;
    size_t *size;
    char *bytes;
    size_t used, room;
    bool failed;
};

static bool make_room(struct stream *stream, size_t more)
{
    size_t needed = stream->used + more + 1, room = stream->room;
    if (needed <= room) {
        return true;
    }
    room = 2 * room > needed ? 2 * room : needed;
    char *bytes = realloc(stream->bytes, room);
    if (!bytes) {
        return false;
    }
    stream->bytes = bytes;
    stream->room = room;
    return true;
}

/* 0 is a failure. */
static ssize_t write_some(void *cookie, const char *bytes, size_t count)
{
    struct stream *stream = cookie;
    if (stream->failed || !make_room(stream, count)) {
        stream->failed = true;
        return 0;
    }
    memcpy(stream->bytes + stream->used, bytes, count);
    stream->used += count;
    return (ssize_t)count;
}

/* Only where it is, for ftell(3). */
static int tell(void *cookie, off64_t *offset, int whence)
{
    if (whence != SEEK_CUR || *offset != 0) {
        return -1;
    }
    *offset = (off64_t)((struct stream *)cookie)->used;
    return 0;
}

static int finish_stream(void *cookie)
{
    struct stream *stream = cookie;
    bool failed = stream->failed || !make_room(stream, 0);
    if (failed) {
        free(stream->bytes);
    } else {
        stream->bytes[stream->used] = '\0';
        *stream->text = stream->bytes;
        *stream->size = stream->used;
    }
    free(stream);
    return failed ? EOF : 0;
}

FILE *profile_stream_open(char **text, size_t *size)
{
    struct stream *stream = calloc(1, sizeof *stream);
    FILE *file = NULL;
    *text = NULL;
    *size = 0;
    if (stream) {
        *stream = (struct stream){.text = text, .size = size};
        file = fopencookie(
            stream, "w",
            (cookie_io_functions_t){.write = write_some, .seek = tell, .close = finish_stream});
    }
    if (!file) {
        free(stream);
        return NULL;
    }
#ifdef __SANITIZE_ADDRESS__
    /* Its own fopencookie() hides what belongs to a FILE: one that is open when a command ends
     * would count as lost. */
    __lsan_ignore_object(stream);
#endif
    return file;
}

/* Small files of the shim and the tracer: written whole, read with suspicion. */
#ifndef SERVET_PRELOAD_NODE_PUT_FILE_H
#define SERVET_PRELOAD_NODE_PUT_FILE_H

#include <stdbool.h>
#include <stddef.h>

/* Writes beside `path` and renames over it: a reader sees the old file or the new one. Unlike
 * profile_save_text() it does not ask for the umask, which would change it for other threads of the
 * program. 0; -EINVAL: there is something that is not a regular file; -errno. */
int pin_file_put(const char *path, const char *text, size_t length);

/* Whether pin_file_put() could: its folder can be written to. 0, -EINVAL, -errno. */
int pin_file_can_put(const char *path);

/* One write to the end of a file, or to stderr for "stderr", so that processes can share it. A
 * failure is said once, with the name of the `variable` that names the file. */
void pin_file_append(const char *variable, const char *where, const char *text, size_t length);

/* Does the name of a report ask for JSON lines? */
bool pin_file_is_json(const char *where);

/* Reads at most `size` - 1 bytes of a regular file of the calling user that nobody else can write
 * to, not through a link in its last part. 0; -EPERM: somebody else's; -EFBIG; -errno. */
int pin_file_get_own(const char *path, char *text, size_t size);

#endif

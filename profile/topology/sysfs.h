/* The small text files of /sys and /proc, of this machine or of a captured tree. libc only, no
 * stdio, and no large buffers on the stack: the shim may be called on a thread with a small one. */
#ifndef SERVET_PROFILE_TOPOLOGY_SYSFS_H
#define SERVET_PROFILE_TOPOLOGY_SYSFS_H

#include "profile/model.h"

/* A cpulist of 4,096 PUs at its longest ("0,2,4,…") has 10,000 bytes. */
#define SYSFS_TEXT_SIZE 16384
#define SYSFS_PATH_SIZE 1024

struct sysfs {
    const char *root; /* "" or the folder of a captured tree */
    char path[SYSFS_PATH_SIZE];
    char text[SYSFS_TEXT_SIZE]; /* of the file read last, without the newline at its end; cut when
                                   longer */
};

/* Reads root + path into fs->text. 0 or -errno. */
int profile_sysfs_read(struct sysfs *fs, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* The same, parsed: 0, -errno, -EINVAL. An empty list is the empty set. */
int profile_sysfs_read_set(struct sysfs *fs, struct profile_set *out, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
int profile_sysfs_read_u32(struct sysfs *fs, uint32_t *out, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* In text of lines "key : value" (cpuinfo, meminfo): the value of the first `key`, as a new string,
 * or NULL. */
char *profile_sysfs_value(const char *text, const char *key);

/* The name of the first processor, or else of the board, as a new string; NULL: it is not known. Of
 * /proc/cpuinfo only the first bytes are read, which costs one PU's worth. fs->text is not kept. */
char *profile_sysfs_processor(struct sysfs *fs);

#endif

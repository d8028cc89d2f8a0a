/* The memory of SERVET_AUTO. */
#include "preload/place/remembered.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "preload/node/node.h"
#include "profile/base/hash.h"

/* Longest build ID that is told apart: SHA-256 has 32 bytes. */
#define BUILD_ID_BYTES 32
#define IDENTITY_SIZE 96
#define MEMORY_SIZE (PATH_MAX + 512)

static const char beginning[] = "servet-auto 1";

/* -- which build -- */

static size_t round_up(size_t bytes)
{
    return (bytes + 3) / 4 * 4;
}

/* Notes larger than that (core files) are nobody's build ID. */
#define NOTES_BYTES 1024

/* Finds the build ID among these ELF notes. Its bytes; 0: there is none. */
static size_t find_build(const unsigned char *notes, size_t length, const unsigned char **id)
{
    ElfW(Nhdr) note;
    for (size_t at = 0; at + sizeof note <= length;) {
        memcpy(&note, notes + at, sizeof note);
        size_t name = at + sizeof note, data = name + round_up(note.n_namesz);
        if (note.n_namesz > NOTES_BYTES || note.n_descsz > NOTES_BYTES ||
            data + note.n_descsz > length) {
            return 0;
        }
        if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == sizeof ELF_NOTE_GNU &&
            note.n_descsz > 0 && memcmp(notes + name, ELF_NOTE_GNU, sizeof ELF_NOTE_GNU) == 0) {
            *id = notes + data;
            return note.n_descsz;
        }
        at = data + round_up(note.n_descsz);
    }
    return 0;
}

static void print_bytes(const unsigned char *bytes, size_t count, char *out, size_t size)
{
    int used = snprintf(out, size, "build-id ");
    for (size_t i = 0; i < count && i < BUILD_ID_BYTES; i++) {
        used += snprintf(out + used, size - (size_t)used, "%02x", bytes[i]);
    }
}

static bool read_build_id(int file, char *out, size_t size)
{
    ElfW(Ehdr) header;
    ElfW(Phdr) part;
    unsigned char notes[NOTES_BYTES];
    const unsigned char *id;
    if (pread(file, &header, sizeof header, 0) != sizeof header ||
        memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_phentsize != sizeof part) {
        return false;
    }
    for (size_t i = 0; i < header.e_phnum; i++) {
        off_t at = (off_t)(header.e_phoff + i * sizeof part);
        if (pread(file, &part, sizeof part, at) != sizeof part) {
            return false;
        }
        if (part.p_type != PT_NOTE || part.p_filesz > sizeof notes) {
            continue;
        }
        ssize_t length = pread(file, notes, part.p_filesz, (off_t)part.p_offset);
        size_t bytes = length > 0 ? find_build(notes, (size_t)length, &id) : 0;
        if (bytes > 0) {
            print_bytes(id, bytes, out, size);
            return true;
        }
    }
    return false;
}

/* `path` gets the executable's real path. */
static int identify(const char *executable, char *path, char *identity)
{
    struct stat info;
    if (!realpath(executable ? executable : "/proc/self/exe", path)) {
        return -errno;
    }
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) {
        return -errno;
    }
    int code = fstat(file, &info) < 0 ? -errno : 0;
    if (code == 0 && !read_build_id(file, identity, IDENTITY_SIZE)) {
        snprintf(identity, IDENTITY_SIZE, "file %lld bytes of %lld.%09ld", (long long)info.st_size,
                 (long long)info.st_mtim.tv_sec, info.st_mtim.tv_nsec);
    }
    close(file);
    return code;
}

/* -- where -- */

int pin_cache_make_folders(char *path)
{
    for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        int code = mkdir(path, 0700) < 0 && errno != EEXIST ? -errno : 0;
        *slash = '/';
        if (code < 0 && code != -EROFS && code != -EACCES) {
            return code;
        }
    }
    return 0;
}

int pin_cache_path(const char *kind, const char *of, char out[PATH_MAX])
{
    const char *cache = pin_environment("XDG_CACHE_HOME"), *home = pin_environment("HOME");
    bool own = cache && *cache == '/';
    if (!own && !(home && *home == '/')) {
        return -ENOENT;
    }
    int length =
        snprintf(out, PATH_MAX, "%s%s/servet/%s/%016llx", own ? cache : home, own ? "" : "/.cache",
                 kind, (unsigned long long)profile_hash_text(PROFILE_HASH_BEGIN, of));
    return length < PATH_MAX ? 0 : -ENAMETOOLONG;
}

/* -- reading and writing -- */

static int parse(const char *text, const char *path, const char *identity,
                 struct pin_remembered *out)
{
    char expected[PATH_MAX + IDENTITY_SIZE + 64], priority[16];
    struct pin_remembered found;
    int length =
        snprintf(expected, sizeof expected, "%s\nexecutable %s\n%s\n", beginning, path, identity);
    if (strncmp(text, expected, (size_t)length) != 0 ||
        sscanf(text + length, "priority %15s share %lf ranks %d", priority, &found.share,
               &found.ranks) != 3) {
        return -ENOENT;
    }
    found.communication = strcmp(priority, "communication") == 0;
    if (!found.communication && strcmp(priority, "memory") != 0) {
        return -ENOENT;
    }
    *out = found;
    return 0;
}

int pin_remembered_recall(const char *executable, struct pin_remembered *out)
{
    char path[PATH_MAX], file[PATH_MAX], identity[IDENTITY_SIZE], text[MEMORY_SIZE];
    int code = identify(executable, path, identity);
    code = code < 0 ? code : pin_cache_path("auto", path, file);
    code = code < 0 ? code : pin_file_get_own(file, text, sizeof text);
    return code < 0 ? code : parse(text, path, identity, out);
}

int pin_remembered_keep(const char *executable, const struct pin_remembered *what)
{
    char path[PATH_MAX], file[PATH_MAX], identity[IDENTITY_SIZE], text[MEMORY_SIZE];
    int code = identify(executable, path, identity);
    code = code < 0 ? code : pin_cache_path("auto", path, file);
    code = code < 0 ? code : pin_cache_make_folders(file);
    if (code < 0) {
        return code;
    }
    int length = snprintf(
        text, sizeof text, "%s\nexecutable %s\n%s\npriority %s share %.4f ranks %d\n", beginning,
        path, identity, what->communication ? "communication" : "memory", what->share, what->ranks);
    return pin_file_put(file, text, (size_t)length);
}

bool pin_remembered_apply(struct pin_options *options, const char *path, struct pin_remembered *out)
{
    if (!options->auto_priority || options->mem_prior || options->comm_prior ||
        pin_remembered_recall(path, out) < 0) {
        return false;
    }
    options->comm_prior = out->communication;
    options->mem_prior = !out->communication;
    return true;
}

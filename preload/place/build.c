/* Which build of a program or library this is. */
#include "preload/place/place.h"

#include <elf.h>
#include <link.h>
#include <string.h>

#include "profile/base/hash.h"

static size_t round_up(size_t bytes)
{
    return (bytes + 3) / 4 * 4;
}

size_t pin_build_find(const unsigned char *notes, size_t length, const unsigned char **id)
{
    ElfW(Nhdr) note;
    for (size_t at = 0; at + sizeof note <= length;) {
        memcpy(&note, notes + at, sizeof note);
        size_t name = at + sizeof note, data = name + round_up(note.n_namesz);
        if (note.n_namesz > PIN_BUILD_NOTES || note.n_descsz > PIN_BUILD_NOTES ||
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

/* The linker's name for the beginning of what this code is in, where that is mapped. */
extern const unsigned char __ehdr_start[] __attribute__((weak, visibility("hidden")));

static ElfW(Phdr) part_at(const ElfW(Ehdr) * header, size_t i)
{
    ElfW(Phdr) part;
    memcpy(&part, __ehdr_start + header->e_phoff + i * sizeof part, sizeof part);
    return part;
}

/* Bytes of the file that are mapped at its beginning. */
static size_t mapped_bytes(const ElfW(Ehdr) * header)
{
    for (size_t i = 0; i < header->e_phnum; i++) {
        const ElfW(Phdr) part = part_at(header, i);
        if (part.p_type == PT_LOAD && part.p_offset == 0) {
            return part.p_filesz;
        }
    }
    return 0;
}

uint64_t pin_build_here(void)
{
    const unsigned char *id;
    ElfW(Ehdr) header;
    if (!__ehdr_start) {
        return 0;
    }
    memcpy(&header, __ehdr_start, sizeof header);
    const size_t mapped = mapped_bytes(&header);
    for (size_t i = 0; i < header.e_phnum; i++) {
        const ElfW(Phdr) part = part_at(&header, i);
        bool there = part.p_type == PT_NOTE && part.p_offset + part.p_filesz <= mapped;
        size_t bytes = there ? pin_build_find(__ehdr_start + part.p_offset, part.p_filesz, &id) : 0;
        if (bytes > 0) {
            return profile_hash_bytes(PROFILE_HASH_BEGIN, id, bytes);
        }
    }
    return 0;
}

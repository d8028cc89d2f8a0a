/* Can a library be preloaded into a command? By its file: the loader, which does that, starts only
 * programs that name it as their interpreter, and leaves a set-user-ID program alone. */
#include "preload/command/preloadable.h"

#include <elf.h>
#include <link.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "profile/base/file.h"

/* Interpreters of interpreters, as the kernel has it. */
#define MOST_SCRIPTS 4

/* The kind of program that this command is. */
static const ElfW(Ehdr) * own_header(void)
{
    static char text[sizeof(ElfW(Ehdr)) + 1] __attribute__((aligned(16)));
    (void)profile_read_small("/proc/self/exe", text, sizeof text);
    return (const ElfW(Ehdr) *)text;
}

static bool has_loader(const char *text, size_t bytes)
{
    const ElfW(Ehdr) *header = (const ElfW(Ehdr) *)text;
    for (size_t i = 0; i < header->e_phnum; i++) {
        ElfW(Phdr) part;
        const size_t at = header->e_phoff + i * sizeof part;
        if (at > bytes - sizeof part) {
            return true; /* not known */
        }
        memcpy(&part, text + at, sizeof part);
        if (part.p_type == PT_INTERP) {
            return true;
        }
    }
    return false;
}

static const char *why_not(const char *path, int scripts)
{
    char text[4096] __attribute__((aligned(16))) = "";
    struct stat about;
    if (scripts > MOST_SCRIPTS || !profile_read_small(path, text, sizeof text) ||
        stat(path, &about) < 0) {
        return NULL;
    }
    if (strncmp(text, "#!", 2) == 0) {
        char *name = text + 2 + strspn(text + 2, " \t");
        name[strcspn(name, " \t\n")] = '\0';
        return why_not(name, scripts + 1);
    }
    if (memcmp(text, ELFMAG, SELFMAG) != 0) {
        return NULL;
    }
    const ElfW(Ehdr) *header = (const ElfW(Ehdr) *)text, *own = own_header();
    if (header->e_ident[EI_CLASS] != own->e_ident[EI_CLASS] ||
        header->e_machine != own->e_machine) {
        return "is of another architecture than libservet_pin.so";
    }
    if ((about.st_mode & S_ISUID && about.st_uid != geteuid()) ||
        (about.st_mode & S_ISGID && about.st_gid != getegid())) {
        return "has more rights than its caller (set-user-ID)";
    }
    return has_loader(text, sizeof text) ? NULL : "is statically linked";
}

const char *pin_why_not_preloadable(const char *path)
{
    return why_not(path, 0);
}

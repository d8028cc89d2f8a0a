/* The libraries that are preloaded into the program, and why they cannot be, which its file says.
 * The loader starts only programs that name it as interpreter, and leaves a set-user-ID program
 * alone. */
#include <elf.h>
#include <errno.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "preload/command/command.h"
#include "preload/node/log.h"
#include "preload/place/priority_cache.h"
#include "profile/base/child.h"
#include "profile/base/cli.h"
#include "profile/base/file.h"
#include "profile/scope.h"
#include "profile/text/record.h"

/* -- libraries -- */

/* The loader splits LD_PRELOAD at these; it has no way to quote them (ld.so(8)). */
static const char separators[] = " :";

/* Makes `path` a link to `target`, in one step: another servet-pin may be about to use it. */
static int put_link(const char *target, const char *path)
{
    char beside[PATH_MAX];
    if (snprintf(beside, sizeof beside, "%s.%ld", path, (long)getpid()) >= (int)sizeof beside) {
        return -ENAMETOOLONG;
    }
    if (symlink(target, beside) < 0 || rename(beside, path) < 0) {
        int rc = -errno;
        unlink(beside);
        return rc;
    }
    return 0;
}

/* A library whose path LD_PRELOAD cannot hold is reached by a link in the user's own cache, in a
 * folder for each installation. */
static void link_library(const char *name, char library[PATH_MAX])
{
    static const char cannot[] = "LD_PRELOAD cannot hold a path with a blank or a colon";
    char folder[PATH_MAX], path[PATH_MAX + NAME_MAX];
    int rc = pin_cache_path("preload", library, folder);
    snprintf(path, sizeof path, "%s/%s", folder, name);
    if (rc < 0 || strlen(path) >= PATH_MAX || strpbrk(path, separators)) {
        cli_fail("%s: %s, and there is no cache without one for a link to it (XDG_CACHE_HOME)",
                 library, cannot);
    }
    rc = pin_cache_make_folders(path);
    if (rc == 0) {
        rc = put_link(library, path);
    }
    if (rc < 0) {
        cli_fail("%s: %s, nor can a link be made at %s: %s", library, cannot, path, strerror(-rc));
    }
    strcpy(library, path);
}

static void find_library(const char *name, char library[PATH_MAX])
{
    /* beside it (build tree), and where `meson install` put them relative to the command, so that a
     * moved installation still works */
    static const char *const places[] = {".", SERVET_LIBRARIES_FROM_BIN, NULL};
    if (profile_child_find(places, name, R_OK, library) < 0) {
        cli_fail("%s not found beside this command or in its library folder", name);
    }
}

/* Puts a library before what LD_PRELOAD holds already. */
static void set_preload(const char *name)
{
    char library[PATH_MAX];
    find_library(name, library);
    if (strpbrk(library, separators)) {
        link_library(name, library);
    }
    const char *before = getenv("LD_PRELOAD");
    if (!before || !*before) {
        pin_command_set("LD_PRELOAD", library);
        return;
    }
    FREED char *both = NULL;
    cli_done(asprintf(&both, "%s:%s", library, before));
    pin_command_set("LD_PRELOAD", both);
}

/* -- the program -- */

bool pin_command_find_program(const struct pin_command *command, char *path, size_t size)
{
    const char *name = command->program[0];
    if (strchr(name, '/')) {
        return snprintf(path, size, "%s", name) < (int)size;
    }
    for (const char *at = getenv("PATH"); at; at = strchr(at, ':') ? strchr(at, ':') + 1 : NULL) {
        int length = (int)strcspn(at, ":");
        if (snprintf(path, size, "%.*s%s%s", length, at, length ? "/" : "", name) < (int)size &&
            access(path, X_OK) == 0) {
            return true;
        }
    }
    return false;
}

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

/* The rest of a sentence; NULL: a library can be preloaded, as far as is known. */
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

/* A program without the libraries runs as without this command: -v and the report give the
 * reason. */
static void say_why_not(const struct pin_command *command)
{
    char path[PATH_MAX];
    const char *why =
        pin_command_find_program(command, path, sizeof path) ? why_not(path, 0) : NULL;
    if (!why) {
        return;
    }
    if (command->options.verbose) {
        cli_note("nothing is placed or traced: %s %s", path, why);
    }
    pin_record(command->options.report, false, "nothing was placed: the command {nothing_placed}",
               PROFILE_FACTS(PROFILE_WORD("nothing_placed", why)));
}

/* The tracer only where it has something to do: every MPI call goes through it. The same holds of
 * calls for GPUs. */
void pin_command_preload(const struct pin_command *command)
{
    const struct pin_options *options = &command->options;
    const char *name = pin_option_table[PIN_GPUS].name, *gpus = getenv(name);
    if (gpus && *gpus && strcmp(gpus, "0") != 0 && !options->follow) {
        cli_usage("%s=%s: expected follow", name, gpus);
    }
    if (options->trace || options->auto_priority) {
        set_preload("libservet_trace.so");
    }
    if (options->follow) {
        set_preload("libservet_follow.so");
    }
    set_preload("libservet_pin.so");
    say_why_not(command);
}

/* This process's side of the registry: what it holds there, from its plan to its end.
 *
 * The registry is open, and other programs wait for it, twice in the life of a program with one
 * worker: while its plan is made, and at its end. */
#include "preload/node/node.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "profile/base/clock.h"
#include "profile/base/file.h"

/* Names that are tried while somebody else's file has them; one digit. */
#define MOST_NAMES 9

static uint64_t job_of_this_process(void)
{
    return PIN_JOB_OF_ONE_PROCESS | (uint64_t)(uint32_t)getpid();
}

/* The lock is the process's; its threads keep apart by `claims->lock`. */
static int open_registry(struct pin_claims *claims)
{
    int code = -ESTALE;
    pthread_mutex_lock(&claims->lock);
    if (claims->peeks) {
        claims->peeks = false;
        code = pin_registry_begin(claims->file, &claims->registry);
    }
    if (code == -ESTALE) {
        code = pin_registry_open(claims->path, &claims->registry);
    }
    if (code < 0) {
        pthread_mutex_unlock(&claims->lock);
    }
    return code;
}

static void close_registry(struct pin_claims *claims)
{
    pin_registry_close(&claims->registry);
    pthread_mutex_unlock(&claims->lock);
}

void pin_claims_forget(struct pin_claims *claims)
{
    if (claims->registry.file > 0) {
        close(claims->registry.file);
    }
    if (claims->peeks) {
        close(claims->file);
    }
    *claims = (struct pin_claims){.lock = PTHREAD_MUTEX_INITIALIZER};
}

/* Everybody may make files in /dev/shm, also one with the name of another user's registry: then
 * that user's programs meet at the next name. 0: it is open, without the lock. */
static int peek(struct pin_claims *claims, const char *path)
{
    int file = -EPERM;
    if (claims->peeks) {
        return 0;
    }
    if (path[0]) {
        memcpy(claims->path, path, strlen(path) + 1);
        file = pin_registry_file(claims->path, true);
    }
    for (int name = 0; !path[0] && file == -EPERM && name < MOST_NAMES; name++) {
        claims->passing =
            pin_registry_default_path(claims->path, sizeof claims->path - sizeof "-9");
        if (name > 0) {
            snprintf(claims->path + strlen(claims->path), sizeof "-9", "-%d", name);
        }
        file = pin_registry_file(claims->path, true);
    }
    claims->peeks = file >= 0;
    claims->file = file;
    return file < 0 ? file : 0;
}

/* `busy` NULL: it begins. */
static void publish_look(struct pin_claims *claims, const char *path, uint64_t begun_ns,
                         const struct profile_mask *allowed, const struct profile_mask *busy)
{
    if (path && peek(claims, path) == 0 && open_registry(claims) == 0) {
        pin_registry_look(&claims->registry, begun_ns, allowed, busy);
        close_registry(claims);
    }
}

void pin_claims_strangers(struct pin_claims *claims, const char *path,
                          const struct profile_mask *allowed, struct profile_mask *busy)
{
    const uint64_t begun_ns = profile_now_ns();
    const uint32_t running = profile_running_tasks();
    *busy = (struct profile_mask){0};
    if (profile_mask_count(allowed) < 2 || running <= 1) {
        return;
    }
    const bool crowd = pin_busy_is_crowd(running, allowed);
    const bool there = path && peek(claims, path) == 0;
    if (path ? there && pin_registry_looked(claims->file, crowd, allowed, busy) : crowd) {
        return;
    }
    publish_look(claims, path, begun_ns, allowed, NULL);
    pin_busy_pus(allowed, 0, busy);
    publish_look(claims, path, begun_ns, allowed, busy);
}

void pin_claims_begin(struct pin_claims *claims, const char *path, bool verbose, uint64_t job,
                      const struct profile_mask *allowed, struct profile_mask *taken)
{
    claims->job = job ? job : job_of_this_process();
    claims->sharing = (struct pin_sharing){.pu = -1};
    if (!path) {
        return;
    }
    int code = peek(claims, path);
    code = code < 0 ? code : open_registry(claims);
    if (code < 0 && verbose) {
        pin_note("%s: %s; other programs on this node are not seen", claims->path,
                 code == -EINVAL ? "no registry" : strerrordesc_np(-code));
    }
    claims->on = code == 0;
    if (claims->on) {
        const struct profile_mask besides = *taken;
        claims->first = !pin_registry_knows(&claims->registry, claims->job);
        pin_registry_taken(&claims->registry, claims->job, allowed, taken);
        pin_claims_avoid(claims, allowed, &besides, taken);
    }
}

void pin_claims_avoid(struct pin_claims *claims, const struct profile_mask *allowed,
                      const struct profile_mask *besides, struct profile_mask *taken)
{
    uint64_t free_pus = 0;
    for (size_t i = 0; i < PROFILE_MASK_WORDS; i++) {
        free_pus |= allowed->word[i] & ~(taken->word[i] | besides->word[i]);
    }
    for (size_t i = 0; claims->first && free_pus && i < PROFILE_MASK_WORDS; i++) {
        taken->word[i] |= besides->word[i];
    }
    claims->taken = *taken;
}

void pin_claims_release(struct pin_claims *claims)
{
    if (claims->on) {
        close_registry(claims);
        claims->on = false;
    }
}

size_t pin_claims_recall(const struct pin_claims *claims, const struct pin_kept *what)
{
    return claims->on ? pin_kept_get(claims->registry.file, what) : 0;
}

void pin_claims_keep(struct pin_claims *claims, const struct pin_kept *what)
{
    if (claims->on) {
        pin_kept_put(claims->registry.file, what);
    }
}

static bool claim(struct pin_claims *claims, uint32_t pu)
{
    bool claimed = pin_registry_claim(&claims->registry, claims->job, pu);
    if (claimed) {
        pin_registry_use(&claims->registry, pu);
    }
    return claimed;
}

void pin_claims_commit(struct pin_claims *claims, const struct profile_mask *held,
                       const uint32_t *pus, size_t count)
{
    if (!claims->on) {
        return;
    }
    claims->on =
        count > 0 && pin_registry_enter(&claims->registry, claims->job, &claims->taken, held) == 0;
    claims->sharing.whole_node = claims->on;
    if (claims->on) {
        pin_registry_use(&claims->registry, pus[0]);
        claims->ahead = pus[0];
    }
    claims->place = claims->registry.own;
    for (size_t i = 1; claims->on && claims->worker_comes && i < count; i++) {
        profile_mask_add(&claims->asked_ahead, pus[i]);
        if (claim(claims, pus[i])) {
            claims->ahead = pus[i];
            break;
        }
    }
    close_registry(claims);
}

bool pin_claims_try_next(struct pin_claims *claims, bool *visits, uint32_t pu)
{
    if (profile_mask_has(&claims->asked_ahead, pu)) {
        return pu == claims->ahead;
    }
    *visits = *visits || (claims->on && open_registry(claims) == 0);
    return !*visits || claim(claims, pu);
}

void pin_claims_leave(struct pin_claims *claims, bool visits)
{
    if (visits) {
        close_registry(claims);
    }
}

bool pin_claims_try(struct pin_claims *claims, uint32_t pu)
{
    if (!claims->on || open_registry(claims) < 0) {
        return true;
    }
    bool claimed = claim(claims, pu);
    close_registry(claims);
    return claimed;
}

struct pin_sharing pin_claims_end(struct pin_claims *claims)
{
    if (!claims->on) {
        return claims->sharing;
    }
    if (!claims->passing) {
        pthread_mutex_lock(&claims->lock); /* to close the file would end the lock of a thread */
        claims->sharing.pu = pin_registry_leave_place(claims->path, claims->place);
        pthread_mutex_unlock(&claims->lock);
    } else if (open_registry(claims) == 0) {
        claims->sharing.pu = pin_registry_leave(&claims->registry);
        if (claims->registry.count == 0) {
            unlink(claims->path); /* who waits for the lock sees it, and makes a new one */
        }
        close_registry(claims);
    }
    claims->on = false;
    return claims->sharing;
}

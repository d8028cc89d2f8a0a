/* Which machine is this? A hash of what does not change while a machine stays the same machine. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "profile/base/hash.h"
#include "profile/model.h"
#include "profile/scope.h"
#include "profile/topology/topology.h"

#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>
#endif

#define CPU "/sys/devices/system/cpu"

/* With the terminator, so that "ab", "c" differs from "a", "bc". */
static void mix_text(uint64_t *hash, const char *text)
{
    *hash = profile_hash_bytes(*hash, text, strlen(text) + 1);
}

/* -- processor -- */

/* The vendor_id, cpu family and model of cpuinfo. The file itself is not read: before Linux 5.18
 * opening /proc/cpuinfo interrupts every PU of the machine to sample its frequency. */
static bool processor_by_cpuid(char *out, size_t size)
{
#if defined(__x86_64__) || defined(__i386__)
    unsigned highest, signature, words[3], unused, unused2;
    if (!__get_cpuid(0, &highest, &words[0], &words[2], &words[1]) ||
        !__get_cpuid(1, &signature, &unused, &unused2, &unused)) {
        return false;
    }
    unsigned family = (signature >> 8) & 15, model = (signature >> 4) & 15;
    if (family == 6 || family == 15) {
        model |= ((signature >> 16) & 15) << 4;
    }
    if (family == 15) {
        family += (signature >> 20) & 255;
    }
    snprintf(out, size, "%.12s %u %u", (const char *)words, family, model);
    return true;
#else
    (void)out;
    (void)size;
    return false;
#endif
}

/* arm64 has the register in sysfs; a captured tree of x86 has only cpuinfo; POWER and RISC-V have
 * names. */
static void processor_by_files(struct sysfs *fs, char *out, size_t size)
{
    static const char *const keys[] = {"vendor_id", "cpu family", "model"};
    if (profile_sysfs_read(fs, CPU "/cpu0/regs/identification/midr_el1") == 0) {
        snprintf(out, size, "%.64s", fs->text);
        return;
    }
    char *value = profile_sysfs_read(fs, "/proc/cpuinfo") == 0
                      ? profile_sysfs_value(fs->text, keys[0])
                      : NULL;
    if (!value) {
        value = profile_sysfs_processor(fs);
        snprintf(out, size, "%.64s", value ? value : "");
        free(value);
        return;
    }
    for (size_t i = 0, used = 0; i < 3 && used < size; i++) {
        free(value);
        value = profile_sysfs_value(fs->text, keys[i]);
        used +=
            (size_t)snprintf(out + used, size - used, "%s%.64s", i ? " " : "", value ? value : "");
    }
    free(value);
}

static void mix_processor(struct sysfs *fs, uint64_t *hash)
{
    char text[256] = "";
    if (*fs->root || !processor_by_cpuid(text, sizeof text)) {
        processor_by_files(fs, text, sizeof text);
    }
    mix_text(hash, text);
}

/* -- caches -- */

/* The caches of one PU, without their sharers: that list gets shorter when a PU goes offline. A
 * level that cannot be read is the end. */
static void mix_caches(struct sysfs *fs, uint64_t *hash, uint32_t pu)
{
    static const char *const attributes[] = {"level", "type", "size", "coherency_line_size",
                                             "ways_of_associativity"};
    for (unsigned index = 0;; index++) {
        for (size_t i = 0; i < sizeof attributes / sizeof *attributes; i++) {
            bool said = profile_sysfs_read(fs, CPU "/cpu%u/cache/index%u/%s", pu, index,
                                           attributes[i]) == 0;
            if (i == 0 && !said) {
                return;
            }
            mix_text(hash, said ? fs->text : "");
        }
    }
}

static int write_signature(struct sysfs *fs, char out[PROFILE_SIGNATURE_SIZE])
{
    uint64_t hash = PROFILE_HASH_BEGIN;
    FREED_BY(profile_set_free) struct profile_set online = {0};
    struct utsname name;
    TRY(profile_sysfs_read_set(fs, &online, CPU "/online"));
    TRY(profile_sysfs_read(fs, CPU "/present"));
    mix_text(&hash, fs->text);
    mix_text(&hash, !*fs->root && uname(&name) == 0 ? name.machine : "");
    mix_processor(fs, &hash);
    mix_text(&hash, profile_sysfs_read(fs, "/sys/devices/system/node/online") == 0 ? fs->text : "");
    mix_caches(fs, &hash, online.count ? online.ids[0] : 0);
    snprintf(out, PROFILE_SIGNATURE_SIZE, "%016" PRIx64, hash);
    return 0;
}

int profile_signature(const char *root, char out[PROFILE_SIGNATURE_SIZE])
{
    FREED struct sysfs *fs = calloc(1, sizeof *fs);
    if (!fs) {
        return -ENOMEM;
    }
    fs->root = root;
    return write_signature(fs, out);
}

/* The name of the processor, where the system has one. x86 writes it into /proc/cpuinfo, POWER and
 * RISC-V under keys of their own, and Arm only as the numbers of its identification register, whose
 * names are Arm's and its licensees' (the table of lscpu(1), the server processors of it). A
 * processor without a name has the name of its board. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profile/topology/topology.h"

static const struct part {
    unsigned implementer, part; /* MIDR_EL1, bits 31:24 and 15:4 */
    const char *name;
} parts[] = {
    {0x41, 0xd03, "Arm Cortex-A53"},
    {0x41, 0xd07, "Arm Cortex-A57"},
    {0x41, 0xd08, "Arm Cortex-A72"},
    {0x41, 0xd0b, "Arm Cortex-A76"},
    {0x41, 0xd0c, "Arm Neoverse-N1"},
    {0x41, 0xd40, "Arm Neoverse-V1"},
    {0x41, 0xd49, "Arm Neoverse-N2"},
    {0x41, 0xd4f, "Arm Neoverse-V2"},
    {0x41, 0xd83, "Arm Neoverse-V3AE"},
    {0x41, 0xd84, "Arm Neoverse-V3"},
    {0x41, 0xd8e, "Arm Neoverse-N3"},
    {0x43, 0x0af, "Cavium ThunderX2"},
    {0x43, 0x0a1, "Cavium ThunderX"},
    {0x46, 0x001, "Fujitsu A64FX"},
    {0x48, 0xd01, "HiSilicon TaiShan-v110"},
    {0x4e, 0x004, "NVIDIA Carmel"},
    {0xc0, 0xac3, "Ampere-1"},
    {0xc0, 0xac4, "Ampere-1a"},
};

static char *name_of_part(unsigned implementer, unsigned part)
{
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        if (parts[i].implementer == implementer && parts[i].part == part) {
            return strdup(parts[i].name);
        }
    }
    /* Newer than this table: the numbers find it in the vendor's manual. */
    char text[48];
    snprintf(text, sizeof text, "Arm implementer 0x%02x part 0x%03x", implementer, part);
    return strdup(text);
}

/* A number of /proc/cpuinfo, "0x41". */
static bool cpuinfo_number(const char *cpuinfo, const char *key, unsigned *out)
{
    char *text = profile_sysfs_value(cpuinfo, key), *end = text;
    unsigned long value = text ? strtoul(text, &end, 0) : 0;
    bool found = end != text;
    free(text);
    if (found) {
        *out = (unsigned)value;
    }
    return found;
}

static char *of_cpuinfo(const char *cpuinfo)
{
    static const char *const keys[] = {"model name", "uarch", "cpu"}; /* x86, RISC-V, POWER */
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        char *name = profile_sysfs_value(cpuinfo, keys[i]);
        char *feature = name ? strstr(name, ", altivec supported") : NULL; /* POWER's vector unit */
        if (feature) {
            *feature = '\0';
        }
        if (name && *name) {
            return name;
        }
        free(name);
    }
    unsigned implementer, part;
    return cpuinfo_number(cpuinfo, "CPU implementer", &implementer) &&
                   cpuinfo_number(cpuinfo, "CPU part", &part)
               ? name_of_part(implementer, part)
               : NULL;
}

char *profile_sysfs_processor(struct sysfs *fs)
{
    char *name = profile_sysfs_read(fs, "/proc/cpuinfo") == 0 ? of_cpuinfo(fs->text) : NULL;
    if (!name && profile_sysfs_read(fs, "/proc/device-tree/model") == 0 && *fs->text) {
        name = strdup(fs->text);
    }
    return name;
}

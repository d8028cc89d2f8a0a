/* What Slurm says of the masks that it gave to the tasks of a step. */
#include "slurm.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum { BITS_OF_HEX_DIGIT = 4 };

static unsigned value_of_digit(char digit)
{
    return digit <= '9' ? (unsigned)(digit - '0') : (unsigned)(tolower((unsigned char)digit) - 'a' + 10);
}

/* Adds a mask's digits, the last of which is PUs 0 to 3. Returns what follows them. */
static const char *add_hexadecimal(const char *text, struct pin_mask *out)
{
    const char *end = text;
    while (isxdigit((unsigned char)*end))
        end++;
    for (const char *digit = end; digit > text; digit--)
        for (unsigned bit = 0; bit < BITS_OF_HEX_DIGIT; bit++) {
            size_t pu = (size_t)(end - digit) * BITS_OF_HEX_DIGIT + bit;
            if (pu < PIN_MASK_PUS && (value_of_digit(digit[-1]) >> bit & 1) != 0)
                pin_mask_add(out, (uint32_t)pu);
        }
    return end;
}

static const char *add_number(const char *text, struct pin_mask *out)
{
    char *end;
    unsigned long pu = strtoul(text, &end, 10);
    if (end > text && pu < PIN_MASK_PUS)
        pin_mask_add(out, (uint32_t)pu);
    return end;
}

bool pin_slurm_step_pus(const char *type, const char *list, struct pin_mask *out)
{
    struct pin_mask all = {0};
    if (!type || !list || (strncmp(type, "mask_cpu", 8) != 0 && strncmp(type, "map_cpu", 7) != 0))
        return false;
    for (const char *text = list; *text;) {
        const char *end = strncmp(text, "0x", 2) == 0 ? add_hexadecimal(text + 2, &all) : add_number(text, &all);
        if (*end != ',' && *end != '\0')
            return false;
        text = *end ? end + 1 : end;
    }
    if (pin_mask_empty(&all))
        return false;
    *out = all;
    return true;
}

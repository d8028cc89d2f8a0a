/* Prints the table of variables as servet-pin --variables does, where servet-pin itself is built
 * for another machine than this one. */
#include <stdio.h>

#include "preload/place/options.h"

int main(void)
{
    for (size_t i = 0; i < PIN_OPTION_COUNT; i++) {
        printf("| `%s` | %s | %s |\n", pin_option_table[i].name, pin_option_table[i].fallback,
               pin_option_table[i].meaning);
    }
    return 0;
}

/* jansson's json_dumpfd & co. are never used here, but json_loadf() compares its argument with
 * `stdin`, and a copy relocation of that variable is what keeps Debian's libjansson.a (not position
 * independent there) out of a shared object. With -Wl,--wrap=stdin the archive refers to this
 * hidden variable, which no FILE is ever equal to. */
#include <stdio.h>

FILE *__wrap_stdin;

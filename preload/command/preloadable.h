/* Can a library be preloaded into a command? */
#ifndef SERVET_PRELOAD_COMMAND_PRELOADABLE_H
#define SERVET_PRELOAD_COMMAND_PRELOADABLE_H

/* Why the library cannot be preloaded into the program, or script, in this file: the rest of a
 * sentence. NULL: it can, as far as is known. */
const char *pin_why_not_preloadable(const char *path);

#endif

/* The functions of a program's MPI library behind the interposed ones. */
#ifndef SERVET_PRELOAD_INTERPOSE_NEXT_H
#define SERVET_PRELOAD_INTERPOSE_NEXT_H

/* The next definition of `name` after ours. An MPI library that was opened with RTLD_LOCAL (an
 * interpreter's extension module needs it) is in no scope but its users': then the loaded objects
 * are asked one by one. NULL: there is none. */
void *pin_next(const char *name);

/* The same for a variable. A program that names it holds the only copy that counts (a copy
 * relocation), so the search begins with the program. */
void *pin_next_variable(const char *name);

#endif

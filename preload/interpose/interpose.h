/* Marks the functions that take the place of libc's or a library's; shim.map lists the same
 * names. */
#ifndef SERVET_PRELOAD_INTERPOSE_INTERPOSE_H
#define SERVET_PRELOAD_INTERPOSE_INTERPOSE_H

#define PIN_EXPORT __attribute__((visibility("default")))

/* Finds the functions behind the exec family before they are needed. */
void pin_resolve_process_calls(void);

#endif

/* libservet: what Servet knows of this machine, for programs that tune themselves.
 *
 *     servet_profile *p;
 *     struct servet_error e;
 *     if (servet_profile_open(NULL, &p, &e) < 0) { fprintf(stderr, "%s\n", e.text); return 2; }
 *     size_t tile = (size_t)sqrt((double)servet_cache_bytes(p, 2, 0) / (3 * sizeof(double)));
 *
 * Every function that can fail returns 0 or a negative errno value and sets its outputs only on success.
 */
#ifndef SERVET_H
#define SERVET_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct servet_profile servet_profile;

/* One line without a newline; empty when there was no error. */
struct servet_error {
    char text[512];
};

#ifdef __cplusplus
}
#endif

#endif

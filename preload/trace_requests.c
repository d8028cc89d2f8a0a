/* Persistent requests that send. */
#include "trace_requests.h"

#include <pthread.h>
#include <stdlib.h>

struct entry {
    struct entry *next;
    trace_word request;
    int32_t peer;
    uint64_t bytes;
};

/* Enough for lists of a few entries in programs with one request for each neighbour and field. */
#define LISTS 1024u
static struct entry *lists[LISTS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static struct entry **find(trace_word request)
{
    struct entry **at = &lists[((request * 0x9e3779b97f4a7c15u) >> 40) % LISTS];
    while (*at && (*at)->request != request)
        at = &(*at)->next;
    return at;
}

void trace_request_keep(trace_word request, int32_t peer, uint64_t bytes)
{
    pthread_mutex_lock(&lock);
    struct entry **at = find(request), *entry = *at;
    if (!entry && (entry = calloc(1, sizeof *entry)))
        *at = entry;
    if (entry) {
        entry->request = request;
        entry->peer = peer;
        entry->bytes = bytes;
    }
    pthread_mutex_unlock(&lock);
}

bool trace_request_find(trace_word request, int32_t *peer, uint64_t *bytes)
{
    pthread_mutex_lock(&lock);
    struct entry *entry = *find(request);
    if (entry) {
        *peer = entry->peer;
        *bytes = entry->bytes;
    }
    pthread_mutex_unlock(&lock);
    return entry;
}

void trace_request_forget(trace_word request)
{
    pthread_mutex_lock(&lock);
    struct entry **at = find(request), *entry = *at;
    if (entry)
        *at = entry->next;
    pthread_mutex_unlock(&lock);
    free(entry);
}

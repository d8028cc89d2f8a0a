/* pipeline [ITEMS [STAGES]]: more threads than PUs, each with its own kind of work and of unlike
 * amount, which pass items on through queues, as encoders do. Prints the seconds. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "profile/base/clock.h"

enum { MOST = 64, ROOM = 8, HEAVY_EACH = 6, HEAVY_STEPS = 60000, LIGHT_STEPS = 3000 };

static struct queue {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int count;
} queues[MOST + 1];
static int items = 1500, stages = 24;
static volatile double sink[MOST][8];

static void move(struct queue *queue, int by)
{
    pthread_mutex_lock(&queue->lock);
    while (queue->count == (by > 0 ? ROOM : 0)) {
        pthread_cond_wait(&queue->changed, &queue->lock);
    }
    queue->count += by;
    pthread_cond_broadcast(&queue->changed);
    pthread_mutex_unlock(&queue->lock);
}

static void *stage(void *argument)
{
    int k = (int)(long)argument;
    for (int i = 0; i < items; i++) {
        move(&queues[k], -1);
        for (int n = k % HEAVY_EACH == 1 ? HEAVY_STEPS : LIGHT_STEPS; n > 0; n--) {
            sink[k][0] += n;
        }
        move(&queues[k + 1], 1);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t thread[MOST];
    if (argc > 1) {
        items = atoi(argv[1]);
    }
    if (argc > 2 && atoi(argv[2]) <= MOST) {
        stages = atoi(argv[2]);
    }
    for (int k = 0; k <= stages; k++) {
        pthread_mutex_init(&queues[k].lock, NULL);
        pthread_cond_init(&queues[k].changed, NULL);
    }
    double begun = profile_now_s();
    for (long k = 0; k < stages; k++) {
        pthread_create(&thread[k], NULL, stage, (void *)k);
    }
    for (int i = 0, done = 0; done < items;) {
        if (i < items && queues[0].count < ROOM) {
            move(&queues[0], 1);
            i++;
        } else {
            move(&queues[stages], -1);
            done++;
        }
    }
    for (int k = 0; k < stages; k++) {
        pthread_join(thread[k], NULL);
    }
    printf("%.4f\n", profile_now_s() - begun);
    return 0;
}

/* Random numbers that are the same everywhere for the same seed: the part that needs the
 * mathematics library. */
#include "profile/base/random.h"

#include <math.h>

double profile_random_normal(struct random *random)
{
    double u = 1 - random_unit(random), v = random_unit(random);
    return sqrt(-2 * log(u)) * cos(2 * M_PI * v);
}

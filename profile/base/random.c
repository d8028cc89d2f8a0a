#include "profile/base/random.h"

#include <math.h>

double profile_random_normal(struct random *random)
{
    double u = 1 - random_unit(random), v = random_unit(random);
    return sqrt(-2 * log(u)) * cos(2 * M_PI * v);
}

/* main() of the test programs that have none of their own: in a library, so that it is linked only
 * where it is missing. */
#include "tests/base/runner.h"

int main(void)
{
    return run_registered();
}

/* A stencil as servet-spmd takes it: a name, or offsets. */
#include "profile/scope.h"
#include <stdlib.h>

#include "mapper/spmd/spmd.h"
#include "tests/fuzz/fuzz.h"

const char *const fuzz_seeds[] = {"1d3", "2d5", "2d9", "1:0,-1:0,0:1,0:-1", "-2:0,3:1", NULL};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct spmd_stencil stencil;
    struct spmd_direction directions[SPMD_DIRECTIONS];
    struct servet_error error = {""};
    FREED char *text = fuzz_text(data, size);
    int rc = spmd_stencil_parse(text, &stencil, &error);
    fuzz_expect_answer(rc, &error);
    if (rc == 0) {
        size_t count = spmd_directions(&stencil, directions);
        fuzz_expect(count > 0 && count <= SPMD_DIRECTIONS, "one to eight neighbours");
    }
    return 0;
}

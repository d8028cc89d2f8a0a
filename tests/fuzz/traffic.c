/* A matrix of traffic: Matrix Market, which the tracer writes too, or plain rows. */
#include "mapper/traffic/traffic.h"
#include "tests/fuzz/fuzz.h"

const char *const fuzz_seeds[] = {
    "%%MatrixMarket matrix coordinate real general\n% of 4 ranks\n4 4 3\n1 2 1e6\n2 1 5\n4 3 0.5\n",
    "%%MatrixMarket matrix coordinate integer symmetric\n3 3 2\n2 1 8\n3 3 1\n",
    "0 8 0 1\n8 0 2 0\n# comment\n0 2 0 8 # of rank 2\n1,0,8,0\n",
    "0\n",
    NULL,
};

static void expect_symmetric(const struct map_matrix *matrix)
{
    fuzz_expect(matrix->ranks <= MAP_MATRIX_MOST_RANKS && matrix->start[0] == 0,
                "ranks in their range");
    for (uint32_t r = 0; r < matrix->ranks; r++) {
        fuzz_expect(matrix->start[r] <= matrix->start[r + 1], "rows one after the other");
        for (size_t i = matrix->start[r]; i < matrix->start[r + 1]; i++) {
            fuzz_expect(matrix->entries[i].to < matrix->ranks && matrix->entries[i].to != r,
                        "another rank of the matrix");
            fuzz_expect(matrix->entries[i].bytes > 0, "bytes");
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct map_matrix matrix = {0};
    struct servet_error error = {""};
    int rc = map_matrix_read(fuzz_file(data, size), &matrix, &error);
    fuzz_expect_answer(rc, &error);
    if (rc == 0) {
        expect_symmetric(&matrix);
        map_matrix_free(&matrix);
    }
    return 0;
}

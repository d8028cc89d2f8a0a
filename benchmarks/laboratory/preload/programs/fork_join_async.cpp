// fork_join_async STEPS TASKS ITERATIONS [1]: a program that computes in steps, each of which starts its
// tasks with std::async, so that every step has threads of its own. With 1 the main thread does one of
// the tasks. Prints the seconds.
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <future>
#include <vector>

static uint64_t compute(long iterations)
{
    uint64_t state = 1;
    for (long i = 0; i < iterations; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
    }
    return state;
}

int main(int argc, char **argv)
{
    if (argc < 4) {
        fputs("usage: fork_join_async STEPS TASKS ITERATIONS [1]\n", stderr);
        return 2;
    }
    int steps = atoi(argv[1]), tasks = atoi(argv[2]);
    long iterations = atol(argv[3]);
    bool main_works = argc > 4 && atoi(argv[4]);
    auto begun = std::chrono::steady_clock::now();
    uint64_t sum = 0;
    for (int step = 0; step < steps; step++) {
        std::vector<std::future<uint64_t>> futures;
        for (int i = 0; i < tasks - (main_works ? 1 : 0); i++) {
            futures.push_back(std::async(std::launch::async, compute, iterations + i));
        }
        if (main_works) {
            sum += compute(iterations);
        }
        for (auto &future : futures) {
            sum += future.get();
        }
    }
    std::chrono::duration<double> took = std::chrono::steady_clock::now() - begun;
    fprintf(stderr, "%lu\n", static_cast<unsigned long>(sum) & 1);
    printf("%.6f\n", took.count());
    return 0;
}

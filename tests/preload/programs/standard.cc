// std::thread: its start routine is in libstdc++ for every thread, whoever made it.
//     standard     a thread made by the object libevent_test (which starts with a helper's name), then one of the
//     program
#include <condition_variable>
#include <mutex>
#include <thread>

extern "C" {
void show(int rank, int thread);
}
void start_helper();
void stop_helper();

int main()
{
    start_helper();
    std::thread worker([] { show(0, 1); });
    worker.join();
    show(0, 0);
    stop_helper();
    return 0;
}

// Stands for an event library written in C++: one std::thread that reports as thread 7 and stays until it is stopped.
#include <condition_variable>
#include <mutex>
#include <thread>

extern "C" {
void show(int rank, int thread);
}
void start_helper();
void stop_helper();

static std::mutex lock;
static std::condition_variable changed;
static bool shown, stopped;
static std::thread helper;

void start_helper()
{
    helper = std::thread([] {
        std::unique_lock<std::mutex> held(lock);
        show(0, 7);
        shown = true;
        changed.notify_all();
        changed.wait(held, [] { return stopped; });
    });
    std::unique_lock<std::mutex> held(lock);
    changed.wait(held, [] { return shown; });
}

void stop_helper()
{
    {
        std::unique_lock<std::mutex> held(lock);
        stopped = true;
    }
    changed.notify_all();
    helper.join();
}

/** A pool of threads, and a parallel stream, which has the common pool of the runtime. */
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.stream.LongStream;

public class Pool {
    static long work(long seed) {
        long state = seed;
        for (int i = 0; i < 2_000_000; i++) {
            state = state * 6364136223846793005L + 1442695040888963407L;
        }
        return state;
    }

    public static void main(String[] arguments) throws Exception {
        ExecutorService pool = Executors.newFixedThreadPool(2);
        List<Future<Long>> results = new ArrayList<>();
        for (long i = 0; i < 100; i++) {
            final long seed = i;
            results.add(pool.submit(() -> work(seed)));
        }
        long sum = 0;
        for (Future<Long> result : results) {
            sum += result.get();
        }
        pool.shutdown();
        sum += LongStream.range(0, 50).parallel().map(Pool::work).sum();
        System.out.println(sum);
    }
}

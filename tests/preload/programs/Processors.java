/* What a pool of this size would be: before and after the runtime has made threads. */
public class Processors {
    public static void main(String[] arguments) throws Exception {
        System.out.println("count " + Runtime.getRuntime().availableProcessors());
        Thread thread = new Thread(
            () -> System.out.println("count " + Runtime.getRuntime().availableProcessors()));
        thread.start();
        thread.join();
    }
}

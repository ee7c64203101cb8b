import java.util.Arrays;

/** Runs the main class that its first argument names, and ends when standard input does: no server outlives its test. */
public final class Attached {
    public static void main(String[] arguments) throws Exception {
        var watch = new Thread(() -> {
            try {
                while (System.in.read() >= 0) {
                }
            } catch (java.io.IOException gone) {
                // The same as its end.
            }
            Runtime.getRuntime().halt(0);
        });
        watch.setDaemon(true);
        watch.start();
        String[] rest = Arrays.copyOfRange(arguments, 1, arguments.length);
        Class.forName(arguments[0]).getMethod("main", String[].class).invoke(null, (Object) rest);
    }
}

import com.alibaba.fastjson.JSONObject;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.Executors;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.rocketmq.client.consumer.DefaultMQPullConsumer;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageQueue;

/** The client's own loops at full speed, for comparison; what is counted begins when the JVM is warm. */
final class Bench {
    private final AtomicLong messages = new AtomicLong();
    private final AtomicLong bytes = new AtomicLong();
    private final AtomicBoolean over = new AtomicBoolean();

    private interface Step {
        void run() throws Exception;
    }

    /** Pulls `pull_size` at a time from each queue of the topic, one thread a queue, from the beginning again at the end. */
    static Object pull(DefaultMQPullConsumer consumer, JSONObject ask) throws Exception {
        int size = ask.getIntValue("pull_size");
        var bench = new Bench();
        var loops = new ArrayList<Callable<Void>>();
        for (var queue : consumer.fetchSubscribeMessageQueues(ask.getString("topic"))) {
            long first = consumer.minOffset(queue);
            long end = consumer.maxOffset(queue);
            long[] next = {first};
            loops.add(bench.loop(() -> {
                var pulled = consumer.pull(queue, "*", next[0], size, 10_000);
                next[0] = pulled.getNextBeginOffset() >= end ? first : pulled.getNextBeginOffset();
                if (pulled.getMsgFoundList() != null) {
                    long sum = 0;
                    for (var message : pulled.getMsgFoundList()) {
                        sum += message.getBody().length;
                    }
                    bench.count(pulled.getMsgFoundList().size(), sum);
                }
            }));
        }
        return bench.measure(loops, ask);
    }

    /** Sends batches of `batch` bodies of `body_bytes` to each queue of the topic, one thread a queue. */
    static Object send(DefaultMQProducer producer, JSONObject ask) throws Exception {
        int batch = ask.getIntValue("batch");
        byte[] body = new byte[ask.getIntValue("body_bytes")];
        java.util.Arrays.fill(body, (byte) 'x');
        String topic = ask.getString("topic");
        var bench = new Bench();
        var loops = new ArrayList<Callable<Void>>();
        for (MessageQueue queue : producer.fetchPublishMessageQueues(topic)) {
            loops.add(bench.loop(() -> {
                List<Message> group = new ArrayList<>(batch);
                for (int n = 0; n < batch; n++) {
                    group.add(new Message(topic, body));
                }
                if (batch == 1) {
                    producer.send(group.get(0), queue);
                } else {
                    producer.send(group, queue);
                }
                bench.count(batch, (long) batch * body.length);
            }));
        }
        return bench.measure(loops, ask);
    }

    private Callable<Void> loop(Step step) {
        return () -> {
            while (!over.get()) {
                step.run();
            }
            return null;
        };
    }

    private void count(long more, long moreBytes) {
        messages.addAndGet(more);
        bytes.addAndGet(moreBytes);
    }

    private Object measure(List<Callable<Void>> loops, JSONObject ask) throws Exception {
        var threads = Executors.newFixedThreadPool(loops.size());
        var running = new ArrayList<java.util.concurrent.Future<Void>>();
        loops.forEach(loop -> running.add(threads.submit(loop)));
        Thread.sleep(ask.getLongValue("warm_ms"));
        long[] begun = {System.nanoTime(), messages.get(), bytes.get(), ticks()};
        Thread.sleep(ask.getLongValue("measure_ms"));
        long[] ended = {System.nanoTime(), messages.get(), bytes.get(), ticks()};
        over.set(true);
        for (var loop : running) {
            loop.get();
        }
        threads.shutdown();
        var result = new JSONObject(true);
        result.put("seconds", (ended[0] - begun[0]) / 1e9);
        result.put("messages", ended[1] - begun[1]);
        result.put("bytes", ended[2] - begun[2]);
        result.put("cpu_ticks", ended[3] - begun[3]);
        return result;
    }

    /** User and system time of this process in clock ticks (100 a second on Linux): fields 14 and 15 of its stat. */
    private static long ticks() throws Exception {
        String stat = Files.readString(Path.of("/proc/self/stat"));
        String[] fields = stat.substring(stat.lastIndexOf(')') + 2).split(" ");
        return Long.parseLong(fields[11]) + Long.parseLong(fields[12]);
    }
}

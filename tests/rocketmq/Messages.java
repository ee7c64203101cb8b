import com.alibaba.fastjson.JSON;
import com.alibaba.fastjson.JSONObject;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Base64;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.rocketmq.client.consumer.DefaultMQPullConsumer;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendStatus;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;

/** Messages in files, a line of JSON each: queue, body (base64), keys, tags, properties. */
final class Messages {
    /** Sends the messages of a file, each to the queue whose number it gives, in batches of up to `batch`. */
    static Object send(DefaultMQProducer producer, String topic, String file, int batch) throws Exception {
        Map<Integer, MessageQueue> queues = new HashMap<>();
        for (var queue : producer.fetchPublishMessageQueues(topic)) {
            queues.put(queue.getQueueId(), queue);
        }
        Map<Integer, List<Message>> waiting = new HashMap<>();
        int sent = 0;
        for (String line : Files.readAllLines(Path.of(file), StandardCharsets.UTF_8)) {
            JSONObject one = JSON.parseObject(line);
            byte[] body = Base64.getDecoder().decode(one.getString("body"));
            var message = new Message(topic, one.getString("tags"), one.getString("keys"), 0, body, true);
            JSONObject properties = one.getJSONObject("properties");
            if (properties != null) {
                properties.forEach((name, value) -> message.putUserProperty(name, value.toString()));
            }
            List<Message> group = waiting.computeIfAbsent(one.getIntValue("queue"), any -> new ArrayList<>());
            group.add(message);
            sent++;
            if (group.size() >= Math.max(1, batch)) {
                flush(producer, queues.get(one.getIntValue("queue")), group);
            }
        }
        for (var group : waiting.entrySet()) {
            flush(producer, queues.get(group.getKey()), group.getValue());
        }
        return sent;
    }

    private static void flush(DefaultMQProducer producer, MessageQueue queue, List<Message> group) throws Exception {
        if (group.isEmpty()) {
            return;
        }
        var result = group.size() == 1 ? producer.send(group.get(0), queue) : producer.send(group, queue);
        if (result.getSendStatus() != SendStatus.SEND_OK) {
            throw new IllegalStateException(result.toString());
        }
        group.clear();
    }

    /** Writes all messages the topic holds into a file, queue by queue, each with where it lay. */
    static Object read(DefaultMQPullConsumer consumer, String topic, String file) throws Exception {
        int read = 0;
        try (var out = Files.newBufferedWriter(Path.of(file), StandardCharsets.UTF_8)) {
            var queues = new ArrayList<>(consumer.fetchSubscribeMessageQueues(topic));
            queues.sort(null);
            for (var queue : queues) {
                long end = consumer.maxOffset(queue);
                for (long next = consumer.minOffset(queue); next < end;) {
                    var pulled = consumer.pull(queue, "*", next, 32, 10_000);
                    next = pulled.getNextBeginOffset();
                    if (pulled.getMsgFoundList() == null) {
                        continue;
                    }
                    for (MessageExt message : pulled.getMsgFoundList()) {
                        out.write(line(message));
                        read++;
                    }
                }
            }
        }
        return read;
    }

    private static String line(MessageExt message) {
        var one = new JSONObject(true);
        one.put("queue", message.getQueueId());
        one.put("offset", message.getQueueOffset());
        one.put("id", message.getMsgId());
        one.put("keys", message.getKeys());
        one.put("tags", message.getTags());
        one.put("properties", message.getProperties());
        one.put("born", message.getBornTimestamp());
        one.put("stored", message.getStoreTimestamp());
        one.put("body", Base64.getEncoder().encodeToString(message.getBody()));
        return one.toJSONString() + "\n";
    }
}

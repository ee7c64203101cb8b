import com.alibaba.fastjson.JSON;
import com.alibaba.fastjson.JSONArray;
import com.alibaba.fastjson.JSONObject;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Properties;
import java.util.TreeMap;
import org.apache.rocketmq.acl.common.AclClientRPCHook;
import org.apache.rocketmq.acl.common.SessionCredentials;
import org.apache.rocketmq.client.consumer.DefaultMQPullConsumer;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.common.TopicConfig;
import org.apache.rocketmq.common.message.MessageQueue;
import org.apache.rocketmq.remoting.RPCHook;
import org.apache.rocketmq.tools.admin.DefaultMQAdminExt;
import org.apache.rocketmq.tools.command.MQAdminStartup;

/**
 * The official client at a test's command, in one process for a whole test program, since every JVM costs seconds.
 *
 * Driver NAME_SERVER [ACCESS_KEY SECRET_KEY]: a line of JSON in, {"do": what, ...}, a line of JSON out, {"ok": answer}
 * or {"error": text}. Compiled against the jars of 4.9 and of 5.x; `var` hides that their packages differ.
 */
public final class Driver {
    final String nameServer;
    final RPCHook hook;
    final DefaultMQAdminExt admin;
    final DefaultMQProducer producer;
    final DefaultMQPullConsumer consumer;
    private boolean started;

    Driver(String[] arguments) {
        nameServer = arguments[0];
        hook = arguments.length < 3 ? null : new AclClientRPCHook(new SessionCredentials(arguments[1], arguments[2]));
        admin = new DefaultMQAdminExt(hook, 10_000);
        admin.setAdminExtGroup("driver-admin");
        admin.setNamesrvAddr(nameServer);
        producer = new DefaultMQProducer("driver-producer", hook);
        producer.setNamesrvAddr(nameServer);
        producer.setSendMsgTimeout(20_000);
        producer.setMaxMessageSize(16 << 20);
        consumer = new DefaultMQPullConsumer("driver-consumer", hook);
        consumer.setNamesrvAddr(nameServer);
    }

    public static void main(String[] arguments) throws Exception {
        // What the clients print must not get between the answers.
        PrintStream answers = System.out;
        System.setOut(System.err);
        var driver = new Driver(arguments);
        var lines = new java.io.BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            var answer = new JSONObject(true);
            try {
                answer.put("ok", driver.answer(JSON.parseObject(line)));
            } catch (Throwable failure) {
                answer.put("error", failure.toString());
                failure.printStackTrace();
            }
            answers.write((answer.toJSONString() + "\n").getBytes(StandardCharsets.UTF_8));
            answers.flush();
        }
        Runtime.getRuntime().halt(0);
    }

    Object answer(JSONObject ask) throws Exception {
        if (!started) {
            admin.start();
            producer.start();
            consumer.start();
            started = true;
        }
        String topic = ask.getString("topic");
        switch (ask.getString("do")) {
            case "register":
                return register(ask.getString("broker"), ask.getString("address"));
            case "create_topic":
                return createTopic(topic, ask.getIntValue("queues"));
            case "send":
                return Messages.send(producer, topic, ask.getString("file"), ask.getIntValue("batch"));
            case "read":
                return Messages.read(consumer, topic, ask.getString("file"));
            case "offsets":
                return offsets(topic);
            case "lag":
                return lag(ask.getString("group"), topic);
            case "commit":
                var queue = new MessageQueue(topic, ask.getString("broker"), ask.getIntValue("queue"));
                admin.updateConsumeOffset(masters().get(ask.getString("broker")), ask.getString("group"), queue,
                        ask.getLongValue("offset"));
                return null;
            case "admin":
                return tool(ask.getJSONArray("arguments"));
            case "pull_bench":
                return Bench.pull(consumer, ask);
            case "send_bench":
                return Bench.send(producer, ask);
            default:
                throw new IllegalArgumentException("no such thing to do: " + ask);
        }
    }

    /** Addresses of the masters, by broker name. */
    private TreeMap<String, String> masters() throws Exception {
        var masters = new TreeMap<String, String>();
        var table = admin.examineBrokerClusterInfo().getBrokerAddrTable();
        for (var broker : table.values()) {
            masters.put(broker.getBrokerName(), broker.getBrokerAddrs().get(0L));
        }
        return masters;
    }

    /**
     * Answers when the name server knows the broker that listens at the address. A broker of 5.x that has not yet seen
     * its name server when it starts registers only ten seconds later; a change of its permission makes it do so now.
     */
    private Object register(String broker, String address) throws Exception {
        var permission = new Properties();
        permission.setProperty("brokerPermission", "6");
        for (long end = System.currentTimeMillis() + 120_000;; Thread.sleep(100)) {
            try {
                if (address.equals(masters().get(broker))) {
                    return admin.fetchBrokerRuntimeStats(address).getTable().get("brokerVersionDesc");
                }
                admin.updateBrokerConfig(address, permission);
            } catch (Exception notYet) {
                if (System.currentTimeMillis() > end) {
                    throw notYet;
                }
            }
        }
    }

    /** Creates the topic, or changes how many queues it has; answers when the name server's route says so. */
    private Object createTopic(String topic, int queues) throws Exception {
        for (String address : masters().values()) {
            admin.createAndUpdateTopicConfig(address, new TopicConfig(topic, queues, queues, 6));
        }
        for (long end = System.currentTimeMillis() + 60_000;;) {
            try {
                var known = admin.examineTopicRouteInfo(topic).getQueueDatas();
                if (!known.isEmpty() && known.stream().allMatch(data -> data.getReadQueueNums() == queues)) {
                    return queues;
                }
            } catch (org.apache.rocketmq.client.exception.MQClientException notYet) {
                // No route so far.
            }
            if (System.currentTimeMillis() > end) {
                throw new IllegalStateException("no route with " + queues + " queues for " + topic);
            }
            Thread.sleep(20);
        }
    }

    private List<MessageQueue> queues(String topic) throws Exception {
        var queues = new ArrayList<>(consumer.fetchSubscribeMessageQueues(topic));
        queues.sort(null);
        return queues;
    }

    private Object offsets(String topic) throws Exception {
        var all = new JSONArray();
        for (var queue : queues(topic)) {
            var one = new JSONObject(true);
            one.put("broker", queue.getBrokerName());
            one.put("queue", queue.getQueueId());
            one.put("min", consumer.minOffset(queue));
            one.put("max", consumer.maxOffset(queue));
            all.add(one);
        }
        return all;
    }

    /** What the admin tool's consumerProgress shows, as numbers. */
    private Object lag(String group, String topic) throws Exception {
        var all = new JSONArray();
        var stats = admin.examineConsumeStats(group, topic).getOffsetTable();
        for (var queue : new java.util.TreeSet<>(stats.keySet())) {
            var offsets = stats.get(queue);
            var one = new JSONObject(true);
            one.put("topic", queue.getTopic());
            one.put("broker", queue.getBrokerName());
            one.put("queue", queue.getQueueId());
            one.put("end", offsets.getBrokerOffset());
            one.put("committed", offsets.getConsumerOffset());
            one.put("lag", offsets.getBrokerOffset() - offsets.getConsumerOffset());
            all.add(one);
        }
        return all;
    }

    /** Runs the servers' own command line tool (mqadmin), and answers what it prints. */
    private Object tool(JSONArray arguments) {
        var list = new ArrayList<>(arguments.toJavaList(String.class));
        list.add("-n");
        list.add(nameServer);
        var printed = new ByteArrayOutputStream();
        PrintStream usual = System.out;
        System.setOut(new PrintStream(printed, true, StandardCharsets.UTF_8));
        try {
            MQAdminStartup.main0(list.toArray(String[]::new), hook);
        } finally {
            System.out.flush();
            System.setOut(usual);
        }
        return printed.toString(StandardCharsets.UTF_8);
    }
}

import com.qcloud.cmq.client.common.ClientConfig;
import com.qcloud.cmq.client.common.ResponseCode;
import com.qcloud.cmq.client.consumer.Consumer;
import com.qcloud.cmq.client.consumer.Message;
import com.qcloud.cmq.client.exception.MQClientException;
import com.qcloud.cmq.client.exception.MQServerException;
import com.qcloud.cmq.client.producer.Producer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/** Drives a local CMQ over TCP with Tencent's Java SDK: CmqSdk NAME_SERVER SECRET_ID SECRET_KEY QUEUE */
public final class CmqSdk {
    private static String[] arguments;

    public static void main(String[] given) throws Exception {
        arguments = given;
        for (String method : List.of(ClientConfig.SIGN_METHOD_SHA1, ClientConfig.SIGN_METHOD_SHA256)) {
            work(method);
        }
        wrongKey();
        System.out.println("java sdk of cmq: ok");
        // It leaves threads behind.
        Runtime.getRuntime().halt(0);
    }

    private static <C extends ClientConfig> C configured(C client, String name, String method, String key) {
        client.setNameServerAddress(arguments[0]);
        client.setSecretId(arguments[1]);
        client.setSecretKey(key);
        client.setSignMethod(method);
        // Clients of one name share a connection.
        client.setInstanceName(name);
        client.setRequestTimeoutMS(10_000);
        client.setRetryTimesWhenSendFailed(3);
        return client;
    }

    private static void work(String method) throws Exception {
        String queue = arguments[3];
        Producer producer = configured(new Producer(), method, method, arguments[2]);
        producer.start();
        Consumer consumer = configured(new Consumer(), method, method, arguments[2]);
        consumer.setBatchPullNumber(16);
        consumer.setPollingWaitSeconds(1);
        consumer.start();

        var sent = producer.send(queue, "hello \u4f60\u597d");
        is(ResponseCode.SUCCESS, sent.getReturnCode());
        var received = consumer.receiveMsg(queue);
        is(ResponseCode.SUCCESS, received.getReturnCode());
        Message message = received.getMessage();
        is(sent.getMsgId(), message.getMessageId());
        is("hello \u4f60\u597d", message.getData());
        is(ResponseCode.SUCCESS, consumer.deleteMsg(queue, message.getReceiptHandle()).getReturnCode());
        is(4430, consumer.deleteMsg(queue, message.getReceiptHandle()).getReturnCode());

        var batch = producer.batchSend(queue, Arrays.asList("b1", "b2", "b3"), 0);
        is(3, batch.getMsgIdList().size());
        var all = consumer.batchReceiveMsg(queue, 16, 1);
        List<String> bodies = new ArrayList<>();
        List<Long> handles = new ArrayList<>();
        List<Long> ids = new ArrayList<>();
        for (Message one : all.getMessageList()) {
            bodies.add(one.getData());
            handles.add(one.getReceiptHandle());
            ids.add(one.getMessageId());
        }
        is(Arrays.asList("b1", "b2", "b3"), bodies);
        is(batch.getMsgIdList(), ids);
        var part = consumer.batchDeleteMsg(queue, Arrays.asList(handles.get(0), 1L));
        is(6010, part.getReturnCode());
        is(1, part.getErrorList().size());
        is(1L, part.getErrorList().get(0).getReceiptHandle());
        is(ResponseCode.SUCCESS, consumer.batchDeleteMsg(queue, handles.subList(1, 3)).getReturnCode());
        is(ResponseCode.NO_NEW_MESSAGES, consumer.receiveMsg(queue, 0).getReturnCode());
        is(ResponseCode.NO_NEW_MESSAGES, consumer.batchReceiveMsg(queue, 16, 1).getReturnCode());

        // Longer than it waits before it sends a heartbeat.
        Thread.sleep(4_000);
        is(ResponseCode.SUCCESS, producer.send(queue, "after idle", 1).getReturnCode());
        var late = consumer.receiveMsg(queue, 20);
        is("after idle", late.getMessage().getData());
        is(ResponseCode.SUCCESS, consumer.deleteMsg(queue, late.getMessage().getReceiptHandle()).getReturnCode());
        producer.shutdown();
        consumer.shutdown();
    }

    private static void wrongKey() throws Exception {
        Producer producer = configured(new Producer(), "wrong", ClientConfig.SIGN_METHOD_SHA1, arguments[2] + "x");
        producer.start();
        try {
            producer.send(arguments[3], "never");
        } catch (MQClientException | MQServerException expected) {
            return;
        }
        throw new AssertionError("a wrong key was taken");
    }

    private static void is(Object expected, Object found) {
        if (!expected.equals(found)) {
            throw new AssertionError("expected " + expected + ", found " + found);
        }
    }
}

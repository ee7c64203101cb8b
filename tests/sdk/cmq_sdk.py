"""Drives a local CMQ over HTTP with Tencent's Python SDK: cmq_sdk.py ENDPOINT SECRET_ID SECRET_KEY"""

import sys
import tempfile
import time

# When it is imported, it writes a log beside what is first here.
scratch = tempfile.TemporaryDirectory()
sys.path.insert(0, scratch.name)

from cmq.account import Account
from cmq.cmq_exception import CMQServerException
from cmq.queue import Message, QueueMeta

endpoint, secret_id, secret_key = sys.argv[1:4]
BODIES = [" ", "plain", "<b> & \"quotes\" = + % 'single'", "\u4e16\u754c \U0001f600", "line\r\nline\ttab ", '{"a_b": [1, 2.50]}']
EMPTY = (7000, "(10200)no message")


def connect(method, sign, key=secret_key, name=secret_id):
    account = Account(endpoint, name, key)
    account.set_sign(sign)
    account.get_client().set_method(method)
    return account


def fails(code, call, *arguments):
    try:
        call(*arguments)
    except CMQServerException as error:
        expected = code if isinstance(code, tuple) else (code, error.message)
        assert (error.code, error.message) == expected, error
        assert error.message.startswith("(") and error.request_id and error.data["clientRequestId"] == 0, error
        return error
    raise AssertionError("expected %s" % (code,))


def counters(queue):
    attributes = queue.get_attributes()
    return attributes.activeMsgNum, attributes.inactiveMsgNum, attributes.delayMsgNum


def queues(account, name):
    queue = account.get_queue(name)
    fails(4440, queue.get_attributes)
    meta = QueueMeta()
    meta.visibilityTimeout = 60
    queue.create(meta)
    fails(4460, queue.create, meta)
    fails(4460, account.get_queue(name.upper()).create, meta)
    fails(4000, account.get_queue("1-no-letter").create, meta)
    attributes = queue.get_attributes()
    assert (attributes.visibilityTimeout, attributes.msgRetentionSeconds, attributes.maxMsgSize) == (60, 345600, 65536)
    assert abs(attributes.createTime - time.time()) < 60 and attributes.rewindmsgNum == 0
    meta.visibilityTimeout = 43201
    fails(4000, queue.set_attributes, meta)
    meta.visibilityTimeout = 30
    queue.set_attributes(meta)
    assert queue.get_attributes().visibilityTimeout == 30
    other = account.get_queue(name + "-2")
    other.create(meta)
    total, page, offset = account.list_queue(name, 1)
    assert (total, [entry["queueName"] for entry in page], offset) == (2, [name], 1), (total, page, offset)
    total, page, offset = account.list_queue(name, 1, offset)
    assert (total, [entry["queueName"] for entry in page], offset) == (2, [name + "-2"], ""), (total, page, offset)
    other.delete()
    fails(6040, other.create, meta)
    return queue


def single(queue):
    fails(EMPTY, queue.receive_message, 0)
    sent = queue.send_message(Message(BODIES[2]))
    assert sent.msgId.isdigit() and counters(queue) == (1, 0, 0), counters(queue)
    received = queue.receive_message(1)
    assert (received.msgId, received.msgBody, received.dequeueCount) == (sent.msgId, BODIES[2], 1)
    now = time.time()
    assert abs(received.enqueueTime - now) < 30 and abs(received.firstDequeueTime - now) < 30
    assert 0 < received.nextVisibleTime - now <= 30, (received.nextVisibleTime, now)
    assert counters(queue) == (0, 1, 0), counters(queue)
    queue.delete_message(received.receiptHandle)
    fails((4430, "(10260)receipt handle is invalid"), queue.delete_message, received.receiptHandle)
    fails(4430, queue.delete_message, "no:handle#of_ours")
    # In POST mode the SDK leaves this value out of what it signs.
    queue.send_message(Message("@at"))
    received = queue.receive_message()
    assert received.msgBody == "@at"
    queue.delete_message(received.receiptHandle)
    assert counters(queue) == (0, 0, 0), counters(queue)
    fails(4400, queue.send_message, Message("x" * 65537)) if queue.cmq_client.method == "POST" else None
    fails(4000, queue.send_message, Message(""))
    fails(4000, queue.send_message, Message("x"), 3601)


def batch(queue):
    sent = queue.batch_send_message([Message(body) for body in BODIES])
    received = queue.batch_receive_message(16, 1)
    assert [message.msgBody for message in received] == BODIES
    assert [message.msgId for message in received] == [message.msgId for message in sent]
    handles = [message.receiptHandle for message in received]
    queue.delete_message(handles[0])
    error = fails(6010, queue.batch_delete_message, handles)
    failed = [(entry["receiptHandle"], entry["code"]) for entry in error.data["errorList"]]
    assert failed == [(handles[0], 4430)], failed
    error = fails(6020, queue.batch_delete_message, handles)
    assert [entry["receiptHandle"] for entry in error.data["errorList"]] == handles
    assert counters(queue) == (0, 0, 0), counters(queue)
    fails(EMPTY, queue.batch_receive_message, 16, 0)
    fails(4000, queue.batch_receive_message, 17)
    fails(4000, queue.batch_send_message, [Message("x")] * 17)
    if queue.cmq_client.method == "POST":
        fails(4470, queue.batch_send_message, [Message("x" * 40000)] * 2)


def delayed(queue):
    queue.send_message(Message("later"), 1)
    assert counters(queue) == (0, 0, 1), counters(queue)
    # Woken by the end of the delay, not by the end of the wait.
    begin = time.time()
    received = queue.receive_message(20)
    assert received.msgBody == "later" and time.time() - begin < 10
    queue.delete_message(received.receiptHandle)


def redelivered(queue):
    meta = queue.get_attributes()
    meta.visibilityTimeout = 1
    queue.set_attributes(meta)
    queue.send_message(Message("twice"))
    first = queue.receive_message(1)
    second = queue.receive_message(10)
    assert (second.msgId, second.dequeueCount, second.firstDequeueTime) == (first.msgId, 2, first.firstDequeueTime)
    fails(4430, queue.delete_message, first.receiptHandle)
    queue.delete_message(second.receiptHandle)


for method in ["POST", "GET"]:
    for sign in ["sha1", "sha256"]:
        account = connect(method, sign)
        queue = queues(account, "sdk-%s-%s" % (method.lower(), sign))
        single(queue)
        batch(queue)
        delayed(queue)
        redelivered(queue)
        queue.delete()
        fails((4440, "(10100)queue is not existed, or deleted"), queue.receive_message)
        fails(4100, connect(method, sign, secret_key + "x").get_queue("q").receive_message)
        fails(4100, connect(method, sign, name=secret_id + "x").get_queue("q").receive_message)
        fails(4000, connect(method, sign, name="x").get_queue("q").receive_message)
        fails(4000, account.list_topic)
        print("python sdk of cmq: ok,", method, sign)

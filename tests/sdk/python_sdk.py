"""Drives a local MNS with Alibaba's Python SDK: python_sdk.py ENDPOINT ACCESS_KEY_ID ACCESS_KEY_SECRET"""

import sys
import time

from mns.account import Account
from mns.mns_exception import MNSServerException
from mns.queue import Message, QueueMeta

endpoint, key_id, secret = sys.argv[1:4]
account = Account(endpoint, key_id, secret)
BODIES = [" ", "plain", "<b> & \"quotes\" 'single'", "\u4e16\u754c \U0001f600", "line\r\nline\ttab ", '{"a": [1, 2.50]}']


def fails(code, call, *arguments):
    try:
        call(*arguments)
    except MNSServerException as error:
        assert error.type == code, error
        assert error.request_id and error.host_id == endpoint or error.sub_errors, error
        return error
    raise AssertionError("expected " + code)


def counters(queue):
    attributes = queue.get_attributes()
    return attributes.active_messages, attributes.inactive_messages, attributes.delay_messages


def queues():
    queue = account.get_queue("sdk-python")
    fails("QueueNotExist", queue.get_attributes)
    meta = QueueMeta(vis_timeout=60, polling_wait_sec=0)
    url = queue.create(meta)
    assert url == endpoint + "/queues/sdk-python", url
    assert queue.create(meta) == url
    fails("QueueAlreadyExist", queue.create, QueueMeta(vis_timeout=61))
    fails("InvalidArgument", queue.create, QueueMeta(vis_timeout=43201))
    attributes = queue.get_attributes()
    assert (attributes.visibility_timeout, attributes.message_retention_period) == (60, 345600), str(attributes)
    assert abs(attributes.create_time - time.time()) < 60
    changed = QueueMeta()
    changed.set_visibilitytimeout(30)
    queue.set_attributes(changed)
    assert queue.get_attributes().visibility_timeout == 30
    account.get_queue("sdk-python-2").create(QueueMeta())
    urls, marker = account.list_queue("sdk-python", 1)
    assert urls == [url] and marker, (urls, marker)
    urls, marker = account.list_queue("sdk-python", 10, marker)
    assert urls == [url + "-2"] and not marker, (urls, marker)
    account.get_queue("sdk-python-2").delete()
    return queue


def single(queue):
    fails("MessageNotExist", queue.receive_message, 0)
    sent = queue.send_message(Message(BODIES[2]))
    peeked = queue.peek_message_with_str_body()
    assert (peeked.message_id, peeked.message_body, peeked.dequeue_count) == (sent.message_id, BODIES[2], 0)
    assert counters(queue) == (1, 0, 0), counters(queue)
    received = queue.receive_message_with_str_body(1)
    assert (received.message_id, received.message_body, received.dequeue_count) == (sent.message_id, BODIES[2], 1)
    assert received.message_body_md5 == sent.message_body_md5
    assert counters(queue) == (0, 1, 0), counters(queue)
    changed = queue.change_message_visibility(received.receipt_handle, 90)
    assert int(changed.next_visible_time) > received.next_visible_time
    fails("MessageNotExist", queue.delete_message, received.receipt_handle)
    queue.delete_message(changed.receipt_handle)
    fails("ReceiptHandleError", queue.delete_message, "nonsense")
    assert counters(queue) == (0, 0, 0), counters(queue)


def batch(queue):
    sent = queue.batch_send_message([Message(body) for body in BODIES])
    assert len(queue.batch_peek_message(16)) == len(BODIES)
    received = queue.batch_receive_message_with_str_body(16, 1)
    assert [message.message_body for message in received] == BODIES
    assert [message.message_id for message in received] == [message.message_id for message in sent]
    handles = [message.receipt_handle for message in received]
    queue.delete_message(handles[0])
    error = fails("MessageNotExist", queue.batch_delete_message, handles)
    assert [sub["ReceiptHandle"] for sub in error.sub_errors] == handles[:1], error.sub_errors
    assert counters(queue) == (0, 0, 0), counters(queue)
    fails("InvalidArgument", queue.batch_receive_message, 17)


def delayed(queue):
    queue.send_message(Message("later", delay_seconds=1))
    assert counters(queue) == (0, 0, 1), counters(queue)
    # Woken by the end of the delay, not by the end of the wait.
    begin = time.time()
    received = queue.receive_message_with_str_body(20)
    assert received.message_body == "later" and time.time() - begin < 10
    queue.delete_message(received.receipt_handle)


queue = queues()
single(queue)
batch(queue)
delayed(queue)
queue.delete()
fails("QueueNotExist", queue.receive_message)
fails("SignatureDoesNotMatch", Account(endpoint, key_id, secret + "x").get_queue("q").receive_message)
fails("InvalidAccessKeyId", Account(endpoint, key_id + "x", secret).get_queue("q").receive_message)
print("python sdk: ok")

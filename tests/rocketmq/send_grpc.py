"""Sends the messages of a file through a proxy's gRPC port, with the official Python client.

  send_grpc.py PROXY TOPIC FILE

The file is as Messages.java reads it; the client chooses the queues, so `queue` is not looked at.
"""

import base64
import collections
import json
import sys

from rocketmq.v5.client import ClientConfiguration, Credentials
from rocketmq.v5.model import Message
from rocketmq.v5.producer import Producer

# Sends under way at a time: the client has no batches.
WINDOW = 64


def message(topic, line):
    given = json.loads(line)
    made = Message()
    made.topic = topic
    made.body = base64.b64decode(given["body"])
    if given.get("tags"):
        made.tag = given["tags"]
    if given.get("keys"):
        made.keys = given["keys"]
    for name, value in (given.get("properties") or {}).items():
        made.add_property(name, value)
    return made


def main(proxy, topic, file):
    producer = Producer(ClientConfiguration(proxy, Credentials(), request_timeout=20), (topic,))
    producer.startup()
    under_way = collections.deque()
    sent = 0
    with open(file, encoding="utf-8") as lines:
        for line in lines:
            if len(under_way) == WINDOW:
                under_way.popleft().result()
            under_way.append(producer.send_async(message(topic, line)))
            sent += 1
    for send in under_way:
        send.result()
    producer.shutdown()
    print(json.dumps({"sent": sent}))


main(*sys.argv[1:])

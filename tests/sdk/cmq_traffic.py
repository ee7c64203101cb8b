"""Traffic by Tencent's own SDK for CMQ (abmn-qcloud-cmq-sdk-py3), over HTTP.

  cmq_traffic.py create  ENDPOINT QUEUE VISIBILITY_SECONDS
  cmq_traffic.py send    ENDPOINT QUEUE     bodies: the lines of standard input
  cmq_traffic.py counts  ENDPOINT QUEUE     {"active": .., "inactive": .., "delayed": ..}

Keys are taken from MNS_ACCESS_KEY_ID and MNS_ACCESS_KEY_SECRET.
"""

import json
import os
import sys
import tempfile

# When it is imported, it writes a log beside what is first here.
scratch = tempfile.TemporaryDirectory()
sys.path.insert(0, scratch.name)

from cmq.account import Account
from cmq.queue import Message, QueueMeta

MOST = 16


def create(queue, visibility):
    meta = QueueMeta()
    meta.visibilityTimeout = int(visibility)
    queue.create(meta)


def send(queue):
    bodies = sys.stdin.read().splitlines()
    for start in range(0, len(bodies), MOST):
        queue.batch_send_message([Message(body) for body in bodies[start : start + MOST]])
    print(json.dumps({"sent": len(bodies)}))


def counts(queue):
    attributes = queue.get_attributes()
    left = {"active": attributes.activeMsgNum, "inactive": attributes.inactiveMsgNum, "delayed": attributes.delayMsgNum}
    print(json.dumps(left))


if __name__ == "__main__":
    action, endpoint, name = sys.argv[1:4]
    account = Account(endpoint, os.environ["MNS_ACCESS_KEY_ID"], os.environ["MNS_ACCESS_KEY_SECRET"])
    {"create": create, "send": send, "counts": counts}[action](account.get_queue(name), *sys.argv[4:])

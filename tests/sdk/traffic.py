"""Traffic by Alibaba's own SDK (aliyun-mns-sdk), and a reader that says what arrived.

  traffic.py create  ENDPOINT QUEUE VISIBILITY_SECONDS
  traffic.py send    ENDPOINT QUEUE FIRST COUNT     bodies FIRST..FIRST+COUNT, one line of JSON at the end
  traffic.py counts  ENDPOINT QUEUE                 {"active": .., "inactive": .., "delayed": ..}
  traffic.py verify  FOLDER COUNT                   {"rows": .., "missing": [..], "repeated": [..], "different": [..]}

Keys are taken from MNS_ACCESS_KEY_ID and MNS_ACCESS_KEY_SECRET.
"""

import collections
import decimal
import json
import os
import pathlib
import sys
import warnings

# The SDK announces that the queue's counters will go; they are what this asks for.
warnings.simplefilter("ignore")

AWKWARD = [
    "plain",
    "",
    " blanks around ",
    "quotes \" ' ` and \\ backslashes \\\\",
    "markup <b>&amp;</b> ]]> <![CDATA[ <!-- -->",
    "line\nfeeds\r\nand\ttabs",
    "controls \u0000 \u0001 \u001f \u007f \u0085 \u2028 \u2029",
    "null",
    "dGhpcyBsb29rcyBsaWtlIGJhc2U2NA==",
    "你好，世界 – žluťoučký kůň – עברית – 🦀👩‍👩‍👧‍👦",
    "combining e\u0301, zero\u200bwidth, bom \ufeff",
    "{\"json\": [\"in\", \"json\"]}",
    "a,b;c|d\u0001e",
    "long " + "x" * 9000,
    "+I[not, a, row]",
    "%20 + percent %FF",
]


def row(n):
    """The row that message n stands for."""
    return {
        "n": n,
        "text": AWKWARD[n % len(AWKWARD)] + f" #{n}",
        "amount": f"{n % 1000}.{n % 100:02d}",
        "at": f"2026-01-{n % 28 + 1:02d} {n % 24:02d}:{n % 60:02d}:{n % 59:02d}.{n % 1000:03d}",
        "tags": [AWKWARD[(n + k) % len(AWKWARD)][:40] for k in range(n % 4)],
        "flag": n % 2 == 0,
    }


def body(n):
    text = json.dumps(row(n), ensure_ascii=n % 2 == 0)
    return f"  {text}\n" if n % 5 == 0 else text


def queue(endpoint, name):
    from mns.account import Account

    account = Account(endpoint, os.environ["MNS_ACCESS_KEY_ID"], os.environ["MNS_ACCESS_KEY_SECRET"])
    return account.get_queue(name)


def create(endpoint, name, visibility):
    from mns.queue import QueueMeta

    queue(endpoint, name).create(QueueMeta(vis_timeout=int(visibility)))


def send(endpoint, name, first, count):
    from mns.queue import Message

    target = queue(endpoint, name)
    numbers = range(int(first), int(first) + int(count))
    for encoded in (True, False):
        # A body goes out in base64 or as plain text, as producers of both habits do; never split by value.
        target.set_encoding(encoded)
        mine = [n for n in numbers if (n % 3 != 0) == encoded]
        for start in range(0, len(mine), 4):
            target.batch_send_message([Message(body(n)) for n in mine[start : start + 4]])
    print(json.dumps({"sent": len(numbers)}))


def counts(endpoint, name):
    meta = queue(endpoint, name).get_attributes()
    print(
        json.dumps(
            {"active": meta.active_messages, "inactive": meta.inactive_messages, "delayed": meta.delay_messages}
        )
    )


def verify(folder, count):
    seen = collections.Counter()
    different = []
    for file in sorted(pathlib.Path(folder).glob("*.json")):
        for line in file.read_text(encoding="utf-8").split("\n"):
            if not line:
                continue
            got = json.loads(line, parse_float=str, parse_int=str)
            n = int(got["n"])
            seen[n] += 1
            want = row(n)
            at = want["at"]
            want_at = at.rstrip("0").rstrip(".") if "." in at else at
            same = (
                got["text"] == want["text"]
                and decimal.Decimal(got["amount"]) == decimal.Decimal(want["amount"])
                and got["at"] == want_at
                and got["tags"] == want["tags"]
                and got["flag"] == want["flag"]
                and len(got["message-id"]) == 32
            )
            if not same:
                different.append({"n": n, "got": line[:300]})
    print(
        json.dumps(
            {
                "rows": sum(seen.values()),
                "missing": [n for n in range(int(count)) if n not in seen][:20],
                "repeated": [n for n, times in seen.items() if times > 1][:20],
                "different": different[:5],
            }
        )
    )


if __name__ == "__main__":
    {"create": create, "send": send, "counts": counts, "verify": verify}[sys.argv[1]](*sys.argv[2:])

"""What Flink's own parser and planner make of scripts.

    python3 tests/flink/check_plans.py FILE.sql...   prints what EXPLAIN says of each INSERT; 1 if Flink refuses anything
    python3 tests/flink/check_plans.py --prepare     only makes ready what tests/flink_sql.rs runs

Needs a JDK of 17 or newer, and pip, which fetches Flink's jars (230 MB) once into target/flink.
"""

import json
import shutil
import subprocess
import sys
import zlib
from pathlib import Path

from check_cases import CACHE, FLINK, ROOT, jars

SOURCE = ROOT / "tests" / "flink" / "FlinkPlans.java"
CLASSES = CACHE / "plans"
STUBS = ("Mns", "Cmq", "Mq", "RocketMq4", "RocketMq5", "Avro", "Parquet")


def prepare():
    """Answers the class path."""
    path, stamp = jars(), CLASSES / "stamp"
    want = f"{FLINK} {zlib.crc32(SOURCE.read_bytes())}"
    if not stamp.is_file() or stamp.read_text() != want:
        if not shutil.which("javac"):
            sys.exit("A JDK of 17 or newer is needed: apt-get install openjdk-17-jdk-headless")
        shutil.rmtree(CLASSES, ignore_errors=True)
        services = CLASSES / "META-INF" / "services"
        services.mkdir(parents=True)
        names = "".join(f"FlinkPlans${name}\n" for name in STUBS)
        (services / "org.apache.flink.table.factories.Factory").write_text(names)
        subprocess.run(["javac", "-nowarn", "-Xlint:-deprecation", "-cp", path, "-d", CLASSES, SOURCE], check=True)
        stamp.write_text(want)
    return f"{CLASSES}:{path}"


def main():
    path = prepare()
    scripts = [Path(name) for name in sys.argv[1:] if name != "--prepare"]
    if not scripts:
        return 0
    lines = "".join(json.dumps({"name": str(file), "script": file.read_text(encoding="utf-8")}) + "\n" for file in scripts)
    java = ["java", "-Xmx1g", "-Duser.timezone=UTC", "-Dfile.encoding=UTF-8", "-cp", path, "FlinkPlans"]
    done = subprocess.run(java, input=lines, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True)
    answers = [json.loads(line) for line in done.stdout.split("\n") if line]
    for answer in answers:
        print(f"== {answer['name']}")
        print(answer.get("error") or "\n".join(answer["plans"]))
    return 1 if any("error" in answer for answer in answers) else 0


if __name__ == "__main__":
    sys.exit(main())

"""Runs the cases of tests/fixtures/flink-avro on real Flink and compares.

    python3 tests/flink/check_avro.py             compares; 1 if anything differs
    python3 tests/flink/check_avro.py --update    writes what Flink makes of each case into the file

Needs what check_cases.py needs, and Flink's Avro format from Maven Central (4 MB, once into target/flink).
"""

import json
import subprocess
import sys
import urllib.request
from pathlib import Path

import check_cases

CASES = check_cases.ROOT / "tests" / "fixtures" / "flink-avro" / "cases.json"
SOURCE = Path(__file__).with_name("FlinkAvro.java")
MAVEN = "https://repo1.maven.org/maven2"
NEEDED = (
    f"org/apache/flink/flink-avro/{check_cases.FLINK}/flink-avro-{check_cases.FLINK}.jar",
    "org/apache/avro/avro/1.11.4/avro-1.11.4.jar",
    "com/fasterxml/jackson/core/jackson-annotations/2.14.3/jackson-annotations-2.14.3.jar",
    "com/fasterxml/jackson/core/jackson-core/2.14.3/jackson-core-2.14.3.jar",
    "com/fasterxml/jackson/core/jackson-databind/2.14.3/jackson-databind-2.14.3.jar",
    "org/slf4j/slf4j-api/1.7.36/slf4j-api-1.7.36.jar",
)


def jars():
    folder = check_cases.CACHE / "avro"
    folder.mkdir(parents=True, exist_ok=True)
    for path in NEEDED:
        jar = folder / path.rsplit("/", 1)[1]
        if not jar.is_file():
            with urllib.request.urlopen(f"{MAVEN}/{path}") as answer:
                jar.write_bytes(answer.read())
    return ":".join(map(str, sorted(folder.glob("*.jar"))))


def main():
    path = f"{check_cases.jars()}:{jars()}"
    classes = check_cases.CACHE / "classes"
    classes.mkdir(exist_ok=True)
    subprocess.run(["javac", "-cp", path, "-d", classes, SOURCE], check=True)
    document = json.loads(CASES.read_text(encoding="utf-8"))
    cases = document["cases"]
    asked = [{"rows": [], "bodies": [], "legacy": True, **{k: case[k] for k in ("columns", "legacy", "rows", "bodies") if k in case}} for case in cases]
    java = ["java", "-Xmx1g", "-Duser.timezone=UTC", "-Dfile.encoding=UTF-8", "-cp", f"{classes}:{path}", "FlinkAvro"]
    lines = "".join(json.dumps(case) + "\n" for case in asked)
    done = subprocess.run(java, input=lines, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(done.stderr)
    wrong = 0
    for case, line in zip(cases, filter(None, done.stdout.split("\n")), strict=True):
        answer = json.loads(line)
        if case.get("flink") != answer:
            wrong += 1
            print(f"{case['name']}\n  the file says {json.dumps(case.get('flink'))}\n  Flink makes   {json.dumps(answer)}")
        case["flink"] = answer
    if "--update" in sys.argv[1:]:
        document["version"] = check_cases.FLINK
        CASES.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    print(f"Flink {check_cases.FLINK} makes of {len(cases) - wrong} of {len(cases)} cases what the file says.")
    return 1 if wrong and "--update" not in sys.argv[1:] else 0


if __name__ == "__main__":
    sys.exit(main())

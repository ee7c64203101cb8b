"""Asks real Flink which types can be inserted into which without a cast, and compares with what the fixture says.

    python3 tests/flink/check_inserts.py            compares; 1 if anything differs
    python3 tests/flink/check_inserts.py --update   writes what Flink says into the fixture

Needs what check_cases.py needs.
"""

import subprocess
import sys

from check_cases import CACHE, CASES, ROOT, jars

FIXTURE = CASES / "inserts.tsv"
TYPES = """BOOLEAN;TINYINT;SMALLINT;INT;BIGINT;FLOAT;DOUBLE;DECIMAL(10, 2);DECIMAL(10, 3);DECIMAL(5, 0);DECIMAL(38, 10)
CHAR(3);CHAR(5);VARCHAR(3);VARCHAR(5);STRING;BINARY(3);BINARY(5);VARBINARY(3);VARBINARY(5);BYTES;DATE;TIME(0);TIME(3)
TIMESTAMP(3);TIMESTAMP(6);TIMESTAMP(9);TIMESTAMP_LTZ(3);TIMESTAMP_LTZ(6);ARRAY<INT>;ARRAY<BIGINT>;ARRAY<STRING>
MAP<STRING, INT>;MAP<STRING, BIGINT>;MAP<INT, STRING>;ROW<a INT>;ROW<b INT>;ROW<a BIGINT>;ROW<a STRING>
ROW<a INT, b INT>""".replace("\n", ";").split(";")


def main():
    classes, path = CACHE / "classes", jars()
    classes.mkdir(exist_ok=True)
    subprocess.run(["javac", "-cp", path, "-d", classes, ROOT / "tests" / "flink" / "FlinkInserts.java"], check=True)
    pairs = "".join(f"{source}\t{sink}\n" for source in TYPES for sink in TYPES)
    java = ["java", "-Xmx1g", "-cp", f"{classes}:{path}", "FlinkInserts"]
    done = subprocess.run(java, input=pairs, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(done.stderr)
    into = {source: [] for source in TYPES}
    for line in done.stdout.splitlines():
        source, sink, told = line.split("\t")
        if told == "yes":
            into[source].append(sink)
    said = "".join(f"{source}\t{';'.join(sinks)}\n" for source, sinks in into.items())
    if "--update" in sys.argv:
        FIXTURE.write_text(said)
    if said != FIXTURE.read_text():
        sys.exit(f"{FIXTURE.name}: Flink says something else; --update writes what it says")
    print(f"{FIXTURE.name}: Flink says the same of {len(TYPES) ** 2} pairs of types")


if __name__ == "__main__":
    main()

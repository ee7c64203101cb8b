"""Runs the cases of tests/fixtures/flink-cases on real Flink and compares.

    python3 tests/flink/check_cases.py            compares; 1 if anything differs
    python3 tests/flink/check_cases.py --update   writes what Flink makes of each case into the files

Needs a JDK of 17 or newer, and pip, which fetches Flink's jars (230 MB) once into target/flink.
"""

import json
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

FLINK = "1.20.1"
ROOT = Path(__file__).resolve().parents[2]
CASES = ROOT / "tests" / "fixtures" / "flink-cases"
CACHE = ROOT / "target" / "flink"
JARS = CACHE / f"apache-flink-libraries-{FLINK}" / "deps" / "lib"


def jars():
    if not JARS.is_dir():
        CACHE.mkdir(parents=True, exist_ok=True)
        package = f"apache-flink-libraries=={FLINK}"
        subprocess.run([sys.executable, "-m", "pip", "download", "--no-deps", package, "-d", CACHE], check=True)
        with tarfile.open(CACHE / f"apache-flink-libraries-{FLINK}.tar.gz") as archive:
            archive.extractall(CACHE, [m for m in archive.getmembers() if "/deps/lib/" in m.name])
    planner = CACHE / "flink-table-planner.jar"
    if not planner.is_file():
        # The parser of types is in a jar inside a jar.
        with zipfile.ZipFile(JARS / f"flink-table-planner-loader-{FLINK}.jar") as outer:
            outer.extract("flink-table-planner.jar", CACHE)
    return ":".join(map(str, [*sorted(JARS.glob("*.jar")), planner]))


def answers(cases):
    classes, path = CACHE / "classes", jars()
    classes.mkdir(exist_ok=True)
    subprocess.run(["javac", "-cp", path, "-d", classes, ROOT / "tests" / "flink" / "FlinkCases.java"], check=True)
    lines = "".join(json.dumps(case) + "\n" for case in cases)
    java = ["java", "-cp", f"{classes}:{path}", "FlinkCases"]
    done = subprocess.run(java, input=lines, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True)
    return [json.loads(line) for line in done.stdout.split("\n") if line]


def cell(value):
    return json.dumps(value, ensure_ascii=False)


def render(document):
    """A case a line, so that a change is seen."""
    groups = []
    for group in document["groups"]:
        head = [f'      {cell(key)}: {cell(value)}' for key, value in group.items() if key != "cases"]
        cases = ",\n".join("        " + cell(case) for case in group["cases"])
        groups.append("    {\n" + ",\n".join([*head, f'      "cases": [\n{cases}\n      ]']) + "\n    }")
    head = [f"  {cell(key)}: {cell(value)}" for key, value in document.items() if key != "groups"]
    return "{\n" + ",\n".join([*head, '  "groups": [\n' + ",\n".join(groups) + "\n  ]"]) + "\n}\n"


def main():
    update, differences = "--update" in sys.argv[1:], 0
    for file in sorted(CASES.glob("*.json")):
        document = json.loads(file.read_text(encoding="utf-8"))
        pairs = [(group, case) for group in document["groups"] for case in group["cases"]]
        shared = ("schema", "options")
        asked = [{"format": document["format"], **{k: g[k] for k in shared if k in g}, **case} for g, case in pairs]
        for (group, case), answer in zip(pairs, answers(asked), strict=True):
            if answer.get("ignore") == answer["default"]:
                del answer["ignore"]
            known = {key: case[key] for key in ("default", "ignore", "written") if key in case}
            if known != answer:
                differences += 1
                print(f"{file.name}: {cell(case.get('body', case.get('hex')))} as {group['schema']}: "
                      f"{cell(known)} is said, Flink makes {cell(answer)}")
            if update:
                here = case.pop("here", None)
                for key in known:
                    del case[key]
                case.update(answer)
                if here is not None:
                    case["here"] = here
        if update:
            document["flink"] = FLINK
            file.write_text(render(document), encoding="utf-8")
        print(f"{file.name}: {len(pairs)} cases")
    return 1 if differences and not update else 0


if __name__ == "__main__":
    sys.exit(main())

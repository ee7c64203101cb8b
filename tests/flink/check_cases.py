"""Runs the cases of tests/fixtures/flink-cases on real Flink and compares.

    python3 tests/flink/check_cases.py            compares; 1 if anything differs
    python3 tests/flink/check_cases.py --list     also lists where this program differs from Flink, and why
    python3 tests/flink/check_cases.py --update   writes what Flink makes of each case into the files

Needs a JDK of 17 or newer, and pip, which fetches Flink's jars (230 MB) once into target/flink.
"""

import json
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

FLINK = "1.20.1"
ROOT = Path(__file__).resolve().parents[2]
CASES = ROOT / "tests" / "fixtures" / "flink-cases"
CACHE = ROOT / "target" / "flink"
ARCHIVE = CACHE / f"apache-flink-libraries-{FLINK}.tar.gz"
JARS = CACHE / f"apache-flink-libraries-{FLINK}" / "deps" / "lib"
NEEDED = ("flink-cep", "flink-connector-files", "flink-csv", "flink-dist", "flink-json", "flink-table-api-java-uber", "flink-table-runtime")
PLANNER = "flink-table-planner.jar"
SQL = CASES / "sql.json"
MODES = ("default", "ignore", "missing")
KNOWN = (*MODES, "tree", "written", "file")


def fetch():
    package = f"apache-flink-libraries=={FLINK}"
    command = [sys.executable, "-m", "pip", "download", "--no-deps", package, "-d", str(CACHE)]
    if subprocess.run(command).returncode != 0 or not ARCHIVE.is_file():
        sys.exit(f"Flink {FLINK} could not be fetched. Where there is a network: {' '.join(command)}")


def unpack():
    with tarfile.open(ARCHIVE) as archive:
        loader = f"flink-table-planner-loader-{FLINK}.jar"
        wanted = [m for m in archive.getmembers() if "/deps/lib/" in m.name and m.isfile()]
        names = (*NEEDED, loader)
        archive.extractall(CACHE, [m for m in wanted if m.name.rsplit("/", 1)[1].startswith(names)])
    # The parser of types is in a jar inside a jar.
    with zipfile.ZipFile(JARS / loader) as outer:
        outer.extract(PLANNER, CACHE)
    (JARS / loader).unlink()


def jars():
    CACHE.mkdir(parents=True, exist_ok=True)
    if not (CACHE / PLANNER).is_file():
        if not ARCHIVE.is_file():
            fetch()
        unpack()
    return ":".join(map(str, [*sorted(JARS.glob("*.jar")), CACHE / PLANNER]))


def run(program, questions):
    """Compiles a program beside this one and runs it: a question a line, and an answer a line."""
    if not shutil.which("javac"):
        sys.exit("A JDK of 17 or newer is needed: apt-get install openjdk-17-jdk-headless")
    classes, path = CACHE / "classes", jars()
    classes.mkdir(exist_ok=True)
    subprocess.run(["javac", "-cp", path, "-d", classes, ROOT / "tests" / "flink" / f"{program}.java"], check=True)
    lines = "".join(json.dumps(question) + "\n" for question in questions)
    # As in the containers that Flink usually runs in.
    java = ["java", "-Xmx1g", "-Duser.timezone=UTC", "-Dfile.encoding=UTF-8", "-cp", f"{classes}:{path}", program]
    done = subprocess.run(java, input=lines, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(done.stderr)
    return [json.loads(line) for line in done.stdout.split("\n") if line]


def answers(cases):
    return [reduced(answer) for answer in run("FlinkCases", cases)]


def check_sql(asked_for):
    """The same for expressions; answers how many the file says wrongly, how many there are, and how many differ here."""
    document = json.loads(SQL.read_text(encoding="utf-8"))
    wrong, all_cases = 0, [case for group in document["groups"] for case in group["cases"]]
    for group, found in zip(document["groups"], run("FlinkSql", document["groups"]), strict=True):
        for case, answer in zip(group["cases"], found, strict=True):
            if "because" in answer:
                answer["because"] = answer["because"].strip().split("\n")[0][:160]
            known = {key: case[key] for key in ("type", "makes", "because") if key in case}
            if known != answer:
                wrong += 1
                print(f"{SQL.name}, {group['name']}: {case['sql']}\n  the file says  {cell(known)}\n  Flink makes    {cell(answer)}")
            if "--update" in asked_for:
                here = case.pop("here", None)
                for key in known:
                    case.pop(key)
                case.update(answer, **({"here": here} if here else {}))
    if "--update" in asked_for:
        document["flink"] = FLINK
        SQL.write_text(render(document), encoding="utf-8")
    differing = [case for case in all_cases if "here" in case]
    if "--list" in asked_for:
        for why in dict.fromkeys(case["here"]["why"] for case in differing):
            print(f"\n{SQL.name}: {why}")
            print("\n".join(f"  {case['sql']}" for case in differing if case["here"]["why"] == why))
    print(f"{SQL.name}: {len(all_cases)} cases, of which {len(differing)} differ here, each with its reason")
    return wrong, len(all_cases), len(differing)


def reduced(answer):
    """Only what differs: a mode from the default, the tree decoder from the streaming one."""
    kept = {key: answer[key] for key in ("default", "written") if key in answer}
    if "file" in answer and answer["file"] != answer["written"] + "\n":
        kept["file"] = answer["file"]
    tree = {}
    for mode in MODES:
        if mode in answer and answer[mode] != answer["default"]:
            kept[mode] = answer[mode]
        if f"tree {mode}" in answer and answer[f"tree {mode}"] != answer[mode]:
            tree[mode] = answer[f"tree {mode}"]
    if tree:
        kept["tree"] = tree
    return {key: kept[key] for key in KNOWN if key in kept}


def cell(value):
    return json.dumps(value, ensure_ascii=False)


def input_of(case):
    return next(cell(case[key]) for key in ("body", "hex", "entries", "nulls") if key in case)


def render(document):
    """A case a line, so that a change is seen."""
    groups = []
    for group in document["groups"]:
        head = [f'      {cell(key)}: {cell(value)}' for key, value in group.items() if key != "cases"]
        cases = ",\n".join("        " + cell(case) for case in group["cases"])
        groups.append("    {\n" + ",\n".join([*head, f'      "cases": [\n{cases}\n      ]']) + "\n    }")
    head = [f"  {cell(key)}: {cell(value)}" for key, value in document.items() if key != "groups"]
    return "{\n" + ",\n".join([*head, '  "groups": [\n' + ",\n".join(groups) + "\n  ]"]) + "\n}\n"


def compare(name, group, case, answer):
    """Prints what the file says wrongly about Flink; answers whether it does."""
    known = {key: case[key] for key in KNOWN if key in case}
    for key in KNOWN:
        if known.get(key) != answer.get(key):
            print(f"{name}, {group['name']}, {group['schema']}: {input_of(case)}\n"
                  f"  {key}: the file says  {cell(known.get(key))}\n"
                  f"  {' ' * len(key)}  Flink makes    {cell(answer.get(key))}")
    return known != answer


def update(case, answer):
    here = case.pop("here", None)
    for key in KNOWN:
        case.pop(key, None)
    case.update(answer)
    if here is not None:
        case["here"] = here


def list_differences(name, pairs):
    """One paragraph a reason, with the first difference of each case in it."""
    reasons = {}
    for group, case in pairs:
        if "here" in case:
            reasons.setdefault(case["here"]["why"], []).append((group, case))
    for why, differing in reasons.items():
        print(f"\n{name}: {why}")
        for group, case in differing:
            here = case["here"]
            for key in (*MODES, "written"):
                flink = case.get(key, None if key == "written" else case.get("default"))
                if key in here and here[key] != flink:
                    print(f"  {group['name']}: {input_of(case)}\n    {key}: Flink {cell(flink)}, here {cell(here[key])}")
                    break
            else:
                print(f"  {group['name']}: {input_of(case)}\n    counted as dropped here")


def main():
    asked_for, wrong, total, listed = sys.argv[1:], 0, 0, 0
    documents = [(file, json.loads(file.read_text(encoding="utf-8"))) for file in sorted(CASES.glob("*.json")) if file != SQL]
    pairs = [(d, g, c) for _, d in documents for g in d["groups"] for c in g["cases"]]
    shared = ("schema", "options")
    asked = [{"format": d["format"], **{k: g[k] for k in shared if k in g}, **c} for d, g, c in pairs]
    results = iter(zip(asked, answers(asked), strict=True))
    for file, document in documents:
        here = [(group, case) for group in document["groups"] for case in group["cases"]]
        for group, case in here:
            answer = next(results)[1]
            wrong += compare(file.name, group, case, answer)
            if "--update" in asked_for:
                update(case, answer)
        if "--list" in asked_for:
            list_differences(file.name, here)
        if "--update" in asked_for:
            document["flink"] = FLINK
            file.write_text(render(document), encoding="utf-8")
        differing = sum("here" in case for _, case in here)
        print(f"{file.name}: {len(here)} cases, of which {differing} differ here, each with its reason")
        total, listed = total + len(here), listed + differing
    of_sql = check_sql(asked_for)
    wrong, total, listed = wrong + of_sql[0], total + of_sql[1], listed + of_sql[2]
    print(f"Flink {FLINK} makes of {total - wrong} of {total} cases what the files say. "
          f"Here {total - listed} agree with it, and {listed} differ as listed.")
    return 1 if wrong and "--update" not in asked_for else 0


if __name__ == "__main__":
    sys.exit(main())

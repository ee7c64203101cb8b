#!/bin/sh
# Sets up what tests of RocketMQ need into target/rocketmq: the real servers of both generations with their clients (from
# Maven, about 120 MB), our programs that use these clients, and the Python client that speaks gRPC. Does nothing if all
# is there in the wanted versions.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
target="$here/../../target/rocketmq"
mkdir -p "$target"
target=$(cd "$target" && pwd)

fail() {
    echo "rocketmq/setup.sh: $1" >&2
    echo "rocketmq/setup.sh: to mend it: $2" >&2
    exit 1
}

wanted() {
    cat "$@" | cksum
}

need_java() {
    for tool in java javac mvn; do
        command -v "$tool" >/dev/null ||
            fail "there is no $tool" "apt-get install -y openjdk-17-jdk-headless maven"
    done
}

setup_jars() {
    lib="$target/lib$1"
    want=$(wanted "$here/pom$1.xml")
    [ "$(cat "$lib/stamp" 2>/dev/null)" = "$want" ] && return
    need_java
    fetch="org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies"
    rm -rf "$lib" "$lib.new"
    mvn -B -q -Dstyle.color=never -f "$here/pom$1.xml" "$fetch" -DincludeScope=runtime "-DoutputDirectory=$lib.new" ||
        fail "the jars of RocketMQ $1 cannot be fetched" "mvn -B -f $here/pom$1.xml $fetch"
    echo "$want" >"$lib.new/stamp"
    mv "$lib.new" "$lib"
}

setup_programs() {
    classes="$target/classes$1"
    want=$(wanted "$here"/*.java "$here/pom$1.xml")
    [ "$(cat "$classes/stamp" 2>/dev/null)" = "$want" ] && return
    need_java
    rm -rf "$classes" "$classes.new"
    mkdir "$classes.new"
    javac -nowarn -Xlint:-deprecation -cp "$target/lib$1/*" -d "$classes.new" "$here"/*.java 2>"$target/javac.log" ||
        { cat "$target/javac.log" >&2; fail "the programs in $here do not compile" "look at the errors above"; }
    echo "$want" >"$classes.new/stamp"
    mv "$classes.new" "$classes"
}

setup_python() {
    stamp="$target/python.stamp"
    want=$(wanted "$here/requirements.txt")
    [ "$(cat "$stamp" 2>/dev/null)" = "$want" ] && return
    command -v python3 >/dev/null || fail "there is no python3" "apt-get install -y python3 python3-venv"
    rm -rf "$target/venv"
    python3 -m venv "$target/venv" ||
        fail "python3 cannot make a virtual environment" "apt-get install -y python3-venv"
    "$target/venv/bin/pip" install --quiet --disable-pip-version-check -r "$here/requirements.txt" ||
        fail "rocketmq-python-client cannot be installed" "$target/venv/bin/pip install -r $here/requirements.txt"
    echo "$want" >"$stamp"
}

for generation in 5 4; do
    setup_jars $generation
    setup_programs $generation
done
setup_python

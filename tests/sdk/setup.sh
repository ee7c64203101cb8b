#!/bin/sh
# Sets up what tests need beside Rust: the SDKs which drive the emulator, into target/sdk (Alibaba's for Python and
# Node, Tencent's for Python and, where there is a JDK, for Java), pyarrow and fastavro, and strace. Does nothing if
# they are there in the wanted versions.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
target="$here/../../target/sdk"
mkdir -p "$target"
target=$(cd "$target" && pwd)

fail() {
    echo "setup.sh: $1" >&2
    echo "setup.sh: to mend it: $2" >&2
    exit 1
}

wanted() {
    cat "$@" | cksum
}

setup_python() {
    stamp="$target/python.stamp"
    want=$(wanted "$here/requirements.txt")
    [ "$(cat "$stamp" 2>/dev/null)" = "$want" ] && return
    command -v python3 >/dev/null || fail "there is no python3" "apt-get install python3 python3-venv"
    rm -rf "$target/venv"
    python3 -m venv "$target/venv" ||
        fail "python3 cannot make a virtual environment" "apt-get install python3-venv"
    "$target/venv/bin/pip" install --quiet --disable-pip-version-check -r "$here/requirements.txt" ||
        fail "the Python SDKs cannot be installed" "$target/venv/bin/pip install -r $here/requirements.txt"
    echo "$want" >"$stamp"
}

setup_node() {
    stamp="$target/node.stamp"
    want=$(wanted "$here/package.json" "$here/package-lock.json")
    [ "$(cat "$stamp" 2>/dev/null)" = "$want" ] && return
    command -v npm >/dev/null || fail "there is no npm" "apt-get install nodejs npm"
    cp "$here/package.json" "$here/package-lock.json" "$target/"
    (cd "$target" && npm ci --silent --ignore-scripts --no-fund --no-audit) ||
        fail "@alicloud/mns cannot be installed" "cd $target && npm ci"
    echo "$want" >"$stamp"
}

# Without a JDK the test that needs it is skipped; in CI it fails.
setup_java() {
    stamp="$target/java/stamp"
    want=$(wanted "$here/cmq_pom.xml" "$here/CmqSdk.java")
    [ "$(cat "$stamp" 2>/dev/null)" = "$want" ] && return
    for tool in java javac mvn; do
        command -v "$tool" >/dev/null && continue
        [ -z "${CI:-}" ] || fail "there is no $tool" "apt-get install -y openjdk-17-jdk-headless maven"
        echo "setup.sh: there is no $tool: without Tencent's Java SDK" >&2
        return
    done
    fetch="org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies"
    rm -rf "$target/java"
    mvn -B -q -Dstyle.color=never -f "$here/cmq_pom.xml" "$fetch" -DincludeScope=runtime "-DoutputDirectory=$target/java" ||
        fail "cmq-tcp-client cannot be fetched" "mvn -B -f $here/cmq_pom.xml $fetch"
    javac -nowarn -cp "$target/java/*" -d "$target/java" "$here/CmqSdk.java" ||
        fail "$here/CmqSdk.java does not compile" "look at the errors above"
    echo "$want" >"$stamp"
}

setup_strace() {
    command -v strace >/dev/null && return
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
        apt-get install -qq -y strace >/dev/null 2>&1 || { apt-get update -qq && apt-get install -qq -y strace; } >/dev/null
    fi
    command -v strace >/dev/null || fail "there is no strace" "apt-get install strace"
}

setup_python
setup_node
setup_java
setup_strace

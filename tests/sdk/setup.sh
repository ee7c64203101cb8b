#!/bin/sh
# Sets up what tests need beside Rust: Alibaba's Python and Node SDKs and Tencent's Python SDK, which drive the emulator, into target/sdk, and
# strace. Does nothing if they are there in the wanted versions.
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

setup_strace() {
    command -v strace >/dev/null && return
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
        apt-get install -qq -y strace >/dev/null 2>&1 || { apt-get update -qq && apt-get install -qq -y strace; } >/dev/null
    fi
    command -v strace >/dev/null || fail "there is no strace" "apt-get install strace"
}

setup_python
setup_node
setup_strace

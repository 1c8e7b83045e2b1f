#!/usr/bin/env bash
# Runs the official conformance harness against examples/everything_server.py, and sums up.
#
#   tools/run_conformance.sh          the three revisions, then the two frozen sets of requirements
#   tools/run_conformance.sh setup    only installs what that needs
#
# Needs npm. Node 22 and the harness, both pinned, come from its registry and are kept below
# build/conformance, with the reports (build/conformance/out) and every log. Nothing is expected to
# fail: the exit status is 0 only when every check of every run passed. A revision's run takes in
# every scenario of that revision; a set of requirements is scored by the harness itself.
#
# PYTHON chooses the interpreter (default: .venv/bin/python).
set -euo pipefail
cd "$(dirname "$0")/.."

NODE=node@22 # the harness needs Node 22 or newer
HARNESS=@modelcontextprotocol/conformance@0.2.0-alpha.12
REVISIONS="2025-06-18 2025-11-25 2026-07-28"
REQUIREMENTS="2025-11-25 2026-07-28"

home=$PWD/build/conformance
out=$home/out
python=${PYTHON:-.venv/bin/python}
main=$home/node_modules/@modelcontextprotocol/conformance/dist/index.js

fail() {
    echo "conformance: $*" >&2
    exit 1
}

setup() {
    # The whole list, so that another pin is another installation.
    [ "$(cat "$home/installed.txt" 2>/dev/null)" = "$NODE $HARNESS" ] && return
    command -v npm >/dev/null || fail "npm is not installed, and the harness comes from its registry"
    rm -rf "$home"
    mkdir -p "$home"
    # First Node: npm chooses versions by the Node it finds.
    for package in "$NODE" "$HARNESS"; do
        PATH="$home/node_modules/.bin:$PATH" npm install --no-audit --no-fund \
            --cache "$home/cache" --prefix "$home" "$package" >"$home/npm.log" 2>&1 ||
            fail "$package cannot be installed from npm; see build/conformance/npm.log"
    done
    echo "$NODE $HARNESS" >"$home/installed.txt"
}

server=
stop() {
    if [ -n "$server" ]; then
        kill "$server" 2>/dev/null || true
        wait "$server" 2>/dev/null || true
        server=
    fi
}

start() { # sets `url`
    "$python" examples/everything_server.py --port 0 >"$out/url.txt" 2>"$out/server.log" &
    server=$!
    for _ in $(seq 300); do
        url=$(head -n 1 "$out/url.txt")
        [ -n "$url" ] && return
        kill -0 "$server" 2>/dev/null || break
        sleep 0.1
    done
    cat "$out/server.log" >&2
    fail "examples/everything_server.py did not start"
}

failed=0
run() { # run NAME ARGUMENT...: one run of the harness, one line of summary
    local name=$1 log="$out/$1.log" code=0 passed=0 refused=0 scenarios=0 unscored=""
    shift
    node "$main" server --url "$url" "$@" -o "$out/$name" 2>&1 | sed 's/\x1b\[[0-9;]*m//g' >"$log" ||
        code=$?
    # A line for each scenario, "✓ ping: 2 passed, 0 failed", and a total of the same words. A set
    # of requirements is followed by "Not scored for ...: 3 scenario(s) run, 0 failing."
    scenarios=$(grep -cE '^(✓|✗) .*: [0-9]+ passed, [0-9]+ failed' "$log" || true)
    passed=$(sed -nE 's/^Total: ([0-9]+) passed, ([0-9]+) failed.*/\1/p' "$log" | tail -n 1)
    refused=$(sed -nE 's/^Total: ([0-9]+) passed, ([0-9]+) failed.*/\2/p' "$log" | tail -n 1)
    unscored=$(sed -nE 's/^Not scored for .*: ([0-9]+) scenario.* run, ([0-9]+) failing.*/\1 \2/p' "$log")
    # The status of a set counts what is scored alone; so does that of a revision, where all is.
    # A harness that ends well without having checked anything has not passed.
    if [ "$code" != 0 ] || [ "${passed:-0}" = 0 ] || { [ -z "$unscored" ] && [ "$refused" != 0 ]; }; then
        failed=1
        sed -n '/SUMMARY/,$p' "$log"
        echo "conformance: $name FAILED; see build/conformance/out/$name.log"
    elif [ -z "$unscored" ]; then
        echo "conformance: $name: $scenarios scenarios, $passed checks passed, $refused failed"
    else
        echo "conformance: $name: all $((scenarios - ${unscored% *})) scored scenarios passed" \
            "(not scored: ${unscored% *}, of which ${unscored#* } fail)"
    fi
}

setup
[ "${1:-}" = setup ] && exit 0
[ -z "${1:-}" ] || fail "there is no ${1}; see the first lines of tools/run_conformance.sh"
export PATH="$home/node_modules/.bin:$PATH"
rm -rf "$out"
mkdir -p "$out"
trap stop EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
start
for revision in $REVISIONS; do
    run "revision-$revision" --suite all --spec-version "$revision"
done
for revision in $REQUIREMENTS; do
    run "requirements-$revision" --requirements "$revision"
done
exit "$failed"

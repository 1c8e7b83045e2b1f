#!/usr/bin/env bash
# Runs the official conformance harness against examples/everything_server.py and has it run
# examples/conformance_client.py; sums up.
#
#   tools/run_conformance.sh           both of these:
#   tools/run_conformance.sh server    the three revisions, then the two frozen sets of requirements
#   tools/run_conformance.sh client    the scenarios for clients of the three revisions
#   tools/run_conformance.sh setup     only installs what that needs
#
# Needs npm. Node 22 and the harness, both pinned, come from its registry and are kept below
# build/conformance, with the reports (build/conformance/out) and every log. Nothing is expected to
# fail: the exit status is 0 only when every check of every run passed. A revision's run takes in
# every scenario of that revision; a set of requirements is scored by the harness itself.
#
# A scenario for clients has a process of the harness of its own: all of one suite start at once,
# too many for a small machine, and the suite does not look at how the client exited. Warnings and
# a client that exits with anything but 0 count as failures.
#
# PYTHON chooses the interpreter (default: .venv/bin/python), JOBS how many scenarios for clients
# run side by side (default: 2), SKIP which of them are left out, an extended regular expression
# (default: those of OAuth, which the client does not have).
set -euo pipefail
cd "$(dirname "$0")/.."

NODE=node@22 # the harness needs Node 22 or newer
HARNESS=@modelcontextprotocol/conformance@0.2.0-alpha.12
REVISIONS="2025-06-18 2025-11-25 2026-07-28"
REQUIREMENTS="2025-11-25 2026-07-28"

home=$PWD/build/conformance
out=$home/out
python=${PYTHON:-.venv/bin/python}
jobs=${JOBS:-2}
skip=${SKIP:-^auth/}
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

scenario() { # scenario REVISION NAME: one scenario for clients, one line, "ok 3/3 tools_call"
    local log="$out/client-$1/${2//\//_}.log" code=0 passed
    node "$main" client --command "$python examples/conformance_client.py" --scenario "$2" \
        --spec-version "$1" --timeout 60000 -o "$out/client-$1" 2>&1 |
        sed 's/\x1b\[[0-9;]*m//g' >"$log" || code=$?
    # "Passed: 3/3, 0 failed, 0 warnings". One scenario lets its client exit as it likes; we do not.
    passed=$(sed -nE 's/^Passed: ([1-9][0-9]*\/[0-9]+), 0 failed, 0 warnings.*/\1/p' "$log" | tail -n 1)
    if [ "$code" != 0 ] || [ -z "$passed" ] || grep -q '^Client exited with code' "$log"; then
        echo "FAILED $2; see ${log#"$PWD/"}"
    else
        echo "ok $passed $2"
    fi
}

run_client() { # run_client REVISION: every scenario for clients, one line of summary
    local name=client-$1 scenarios passed
    mkdir -p "$out/$name"
    node "$main" list --client --spec-version "$1" |
        sed -nE 's/^ *- ([^ ]+).*/\1/p' | grep -vE "$skip" >"$out/$name.txt" ||
        fail "there is no scenario for clients of $1"
    xargs -P "$jobs" -I{} bash -o pipefail -c 'scenario "$@"' - "$1" {} <"$out/$name.txt" >"$out/$name.log"
    scenarios=$(wc -l <"$out/$name.txt")
    passed=$(sed -nE 's/^ok ([0-9]+)\/.*/\1/p' "$out/$name.log" | awk '{ sum += $1 } END { print sum + 0 }')
    if [ "$(grep -c "^ok " "$out/$name.log")" -eq "$scenarios" ]; then
        echo "conformance: $name: $scenarios scenarios, $passed checks passed, 0 failed"
    else
        failed=1
        grep -v '^ok ' "$out/$name.log" | sed "s/^/conformance: $name: /"
    fi
}

setup
parts=${1:-server client}
case "$parts" in
setup) exit 0 ;;
server | client | "server client") ;;
*) fail "there is no $parts; see the first lines of tools/run_conformance.sh" ;;
esac
export PATH="$home/node_modules/.bin:$PATH"
rm -rf "$out"
mkdir -p "$out"
trap stop EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
if [[ $parts = *server* ]]; then
    start
    for revision in $REVISIONS; do
        run "revision-$revision" --suite all --spec-version "$revision"
    done
    for revision in $REQUIREMENTS; do
        run "requirements-$revision" --requirements "$revision"
    done
    stop
fi
if [[ $parts = *client* ]]; then
    export -f scenario
    export out main python
    for revision in $REVISIONS; do
        run_client "$revision"
    done
fi
exit "$failed"

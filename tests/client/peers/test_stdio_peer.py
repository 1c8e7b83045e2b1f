"""The process that follows a script does what the script says, and writes down what came."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest

from tests.client.peers.process import Processes, lives
from tests.client.peers.script import (
    Message,
    Step,
    close_output,
    kill,
    leave,
    on,
    raw,
    script,
    stderr,
    text,
    until,
    wait,
)

CALL: Message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "echo"}}
# Seconds within which a process that works has ended, on a busy machine.
BOUND = 60.0


def talk(processes: Processes, *messages: Message) -> subprocess.CompletedProcess[bytes]:
    """Start a process, say something, close its input and wait for its end."""
    lines = b"".join(json.dumps(each).encode() + b"\n" for each in messages)
    return subprocess.run(
        [processes.command, *processes.args],
        input=lines,
        capture_output=True,
        timeout=BOUND,
        check=False,
    )


def test_it_answers_and_writes_down_what_came(tmp_path: Path) -> None:
    processes = Processes(script("legacy"), tmp_path, ["a b", "$(x)"])
    ended = talk(processes, {**CALL, "method": "ping"}, CALL)
    assert [json.loads(line)["id"] for line in ended.stdout.splitlines()] == [1, 1]
    assert ended.returncode == 0
    [life] = processes.lives
    assert life.methods == ["ping", "tools/call"]
    assert life.argv == ["a b", "$(x)"]
    assert life.env["PATH"] == os.environ["PATH"]
    assert life.events == ["eof"]


@pytest.mark.parametrize(
    ("step", "code"), [(leave(3), 3), (kill(9), -signal.SIGKILL)], ids=["exit", "kill"]
)
def test_it_ends_as_it_is_told(tmp_path: Path, step: Step, code: int) -> None:
    ended = talk(Processes(script("legacy", on("tools/call", raw("half"), step)), tmp_path), CALL)
    assert (ended.stdout, ended.returncode) == (b"half", code)


def test_each_process_has_its_number(tmp_path: Path) -> None:
    processes = Processes(script("legacy", on("start", leave(5), life=1)), tmp_path)
    assert [talk(processes, CALL).returncode for _ in range(2)] == [5, 0]
    assert [life.methods for life in processes.lives][1] == ["tools/call"]


def test_what_waits_holds_nothing_else(tmp_path: Path) -> None:
    late = on("tools/call slow", until("ping"), wait(0.0), text("late"))
    slow = {**CALL, "id": 2, "params": {"name": "slow"}}
    ping = {"jsonrpc": "2.0", "id": 3, "method": "ping"}
    ended = talk(Processes(script("legacy", late), tmp_path), slow, CALL, ping)
    assert [json.loads(line)["id"] for line in ended.stdout.splitlines()] == [1, 2, 3]


def test_stderr_and_stdout_are_two_things(tmp_path: Path) -> None:
    steps = [stderr(b"\xff oops\n"), close_output()]
    ended = talk(Processes(script("legacy", on("start", *steps)), tmp_path), CALL)
    assert (ended.stdout, ended.stderr, ended.returncode) == (b"", b"\xff oops\n", 0)


def test_it_can_ignore_everything_and_leave_a_child(tmp_path: Path) -> None:
    data = script("legacy", ignores=["eof", "term"], grandchild=True)
    processes = Processes(data, tmp_path)
    process = subprocess.Popen(
        [processes.command, *processes.args], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        with process.stdout, process.stdin as pipe:
            pipe.write(b'{"id":1,"method":"ping"}\n')
            pipe.flush()
            assert process.stdout.readline()
        process.terminate()
        [life] = processes.lives
        assert life.grandchild is not None
        assert processes.alive() == [process.pid, life.grandchild]
        os.kill(life.grandchild, signal.SIGKILL)
    finally:
        process.kill()
        process.wait(BOUND)
    assert not lives(process.pid)

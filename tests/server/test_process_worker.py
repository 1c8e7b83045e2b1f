"""What happens inside a worker, without one: finding a function and answering a call."""

from __future__ import annotations

import functools
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from raxol_mcp.errors import ConfigurationError
from raxol_mcp.server import process_worker
from raxol_mcp.server.process_messages import (
    Failed,
    Frames,
    Returned,
    Run,
    Standby,
    frame,
    from_worker,
)
from raxol_mcp.server.process_worker import answer, inside_worker, load, resolve, use_main, watch

TARGETS = "tests.server.worker_targets"
BOUND = 20.0


@pytest.fixture(autouse=True)
def _is_a_fresh_process(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    before = sys.modules["__main__"]
    monkeypatch.setattr(process_worker, "_main", None)
    monkeypatch.setattr(process_worker, "_functions", {})
    yield
    sys.modules["__main__"] = before
    sys.modules.pop("__mp_main__", None)


def answered(name: str, *positional: object, **keywords: object) -> Returned | Failed:
    run = Run(f"{TARGETS}:{name}", list(positional), keywords)
    framed = answer(msgspec.msgpack.encode(run), max_result_bytes=1000)
    [payload] = Frames(100_000).feed(framed)
    message: Standby | Returned | Failed = from_worker.decode(payload)
    assert not isinstance(message, Standby)
    return message


def test_a_value_is_answered() -> None:
    assert answered("add", 1, right=2) == Returned(3)
    assert answered("wait_a_moment", [None]) == Returned([None])


def test_an_exception_is_answered_without_our_own_frames() -> None:
    failed = answered("raise_value_error", "secret")
    assert isinstance(failed, Failed)
    assert (failed.type_name, failed.spoken) == ("ValueError", None)
    assert "process_worker" not in failed.traceback


def test_a_traceback_and_a_spoken_text_are_made_to_travel() -> None:
    failed = answered("raise_cut_emoji")
    assert isinstance(failed, Failed)
    assert failed.spoken == "cut \\ud83d"
    long = answered("raise_value_error", "x" * 100_000)
    assert isinstance(long, Failed)
    assert len(long.traceback) == 32 * 1024


def test_an_exception_without_a_text_is_still_a_failure() -> None:
    failed = answered("raise_unprintable")
    assert isinstance(failed, Failed)
    assert failed.type_name == "Unprintable"


@pytest.mark.parametrize(
    ("name", "type_name"),
    [
        ("returns_object", "UnencodableResult"),
        ("returns_surrogate", "UnencodableResult"),
        ("returns_itself", "UnencodableResult"),
    ],
)
def test_a_value_that_cannot_travel_is_a_failure(name: str, type_name: str) -> None:
    failed = answered(name)
    assert isinstance(failed, Failed)
    assert failed.type_name == type_name


def test_a_value_above_the_bound_is_a_failure() -> None:
    failed = answered("text", 1000)
    assert isinstance(failed, Failed)
    assert failed.type_name == "ResultTooLarge"


def test_a_wish_to_exit_passes() -> None:
    with pytest.raises(SystemExit):
        answered("leave", 3)


@pytest.mark.parametrize(
    "target",
    [
        f"{TARGETS}:absent",
        f"{TARGETS}:spin.<locals>.inner",
        f"{TARGETS}:TARGETS",
        "string:digits",
        "string",
    ],
)
def test_what_is_not_there_or_not_a_function_is_named(target: str) -> None:
    with pytest.raises(ConfigurationError, match=r"does not exist|is not a function"):
        resolve(target)


def plain() -> str:
    return "plain"


class Holder:
    def __init__(self, **attributes: object) -> None:
        vars(self).update(attributes)


wrapped = functools.lru_cache(plain)
tool_function = Holder(function=plain)
tool_callback = Holder(function=None, callback=plain)
partial = functools.partial(plain)
ring = Holder()
ring.function = ring  # type: ignore[attr-defined]  # that is what a Holder is for


@functools.wraps(plain)
def wrapper() -> str:
    return f"wrapped {plain()}"


@pytest.mark.parametrize("name", ["plain", "wrapped", "tool_function", "tool_callback", "partial"])
def test_a_decorated_function_is_found(name: str) -> None:
    assert resolve(f"{__name__}:{name}")() == "plain"


def test_a_wrapper_that_is_a_function_is_what_is_called() -> None:
    assert resolve(f"{__name__}:wrapper")() == "wrapped plain"


def test_a_ring_of_decorators_ends() -> None:
    with pytest.raises(ConfigurationError, match="is not a function"):
        resolve(f"{__name__}:ring")


def test_methods_of_classes_are_found() -> None:
    assert resolve("builtins:dict.fromkeys")("ab") == {"a": None, "b": None}


def test_the_script_is_imported_once_under_another_name(tmp_path: Path) -> None:
    path = tmp_path / "script.py"
    path.write_text(
        "from dataclasses import dataclass\n"
        "@dataclass\nclass Point:\n    x: 'int' = 0\n"
        "started = __name__ == '__main__'\ndef f(): return __file__\n"
    )
    assert not inside_worker()
    use_main(None, str(path))
    assert inside_worker()
    assert load("__main__") is load("__main__") is sys.modules["__main__"]
    assert load("__main__").started is False
    assert resolve("__main__:f")() == str(path)


def test_a_script_that_fails_is_not_half_there(tmp_path: Path) -> None:
    path = tmp_path / "script.py"
    path.write_text("1 / 0")
    use_main(None, str(path))
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            load("__main__")
    assert "__mp_main__" not in sys.modules


def test_a_module_run_by_name_is_imported_by_its_name() -> None:
    use_main("colorsys", None)
    assert load("__main__").__name__ == "colorsys"


def test_a_function_typed_into_an_interpreter_is_refused() -> None:
    use_main(None, None)
    with pytest.raises(ConfigurationError, match="interpreter"):
        load("__main__")


def test_watching_kills_the_group_when_the_peer_is_gone() -> None:
    """Where the kernel does not tell, and while the main thread runs user code."""
    program = (
        f"import sys; sys.path[:] = {sys.path!r}\n"
        "import os, socket, threading\n"
        "from raxol_mcp.server.process_worker import watch\n"
        "stream = socket.socket(fileno=int(sys.argv[1]))\n"
        "threading.Thread(target=watch, args=(stream,), daemon=True).start()\n"
        "stream.sendall(b'begun')\n"
        "while True: pass\n"
    )
    own, other = socket.socketpair()
    with own:
        with other:
            child = subprocess.Popen(
                [sys.executable, "-c", program, str(other.fileno())],
                pass_fds=[other.fileno()],
                start_new_session=True,
            )
        own.settimeout(BOUND)
        assert own.recv(100) == b"begun"
        own.sendall(b"unread input hides nothing")
    assert child.wait(BOUND) == -signal.SIGKILL


def test_watching_stops_when_told() -> None:
    own, other = socket.socketpair()
    reading, writing = os.pipe()
    os.close(writing)
    with own, other:
        watch(own, stop=reading)
    os.close(reading)


def test_frames_of_a_worker_are_what_the_server_decodes() -> None:
    [payload] = Frames(100).feed(frame(Standby(7)))
    assert from_worker.decode(payload) == Standby(7)

"""Serving for a process: exit codes, and how patient the end is."""

import asyncio
import io
import json
import os
import re
import signal
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from threading import Thread

import pytest

from raxol_mcp import ConfigurationError, Server, allow_all
from raxol_mcp.cli import serving
from raxol_mcp.cli.network import Network


@dataclass
class Pipes:
    """Both pipes of a server: what a client would hold, and what the server is given."""

    stdin_fd: int
    stdout_fd: int
    to_server: int
    from_server: int
    ended: list[tuple[float, int]] = field(default_factory=list)

    def serve(self, server: Server, *requests: object, end_input: bool = True) -> int:
        """Serve what was written to the input; note what it asked of the process."""
        lines = "".join(json.dumps(request) + "\n" for request in requests)
        os.write(self.to_server, lines.encode())
        if end_input:
            os.close(self.to_server)
        return serving.serve(
            server,
            self.stdin_fd,
            self.stdout_fd,
            end_process=lambda seconds, code: self.ended.append((seconds, code)),
        )

    def answers(self) -> list[object]:
        """Read what was answered so far."""
        os.close(self.stdout_fd)
        with open(self.from_server, "rb", closefd=False) as file:
            return [json.loads(line) for line in file]


@pytest.fixture
def pipes() -> Iterator[Pipes]:
    """Open both pipes; close what is still open afterwards."""
    stdin_fd, to_server = os.pipe()
    from_server, stdout_fd = os.pipe()
    yield Pipes(stdin_fd, stdout_fd, to_server, from_server)
    for fd in (stdin_fd, to_server, from_server, stdout_fd):
        try:
            os.close(fd)
        except OSError:
            continue


def request(id: int, name: str) -> object:
    """Call a tool, in the stateless era: nothing comes before it."""
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    params = {"name": name, "_meta": meta}
    return {"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}


def server_of(function: Callable[..., object]) -> Server:
    """Return a server with one tool."""
    server = Server("served")
    server.tool(description="A tool.")(function)
    return server


def test_the_end_of_the_input_is_success(pipes: Pipes) -> None:
    async def look() -> str:
        return "seen"

    assert pipes.serve(server_of(look), request(1, "look")) == 0
    assert "seen" in str(pipes.answers())


def test_a_client_that_went_away_is_no_failure(pipes: Pipes) -> None:
    """A client that dies closes both pipes: which one is noticed first is chance."""
    os.close(pipes.from_server)

    async def look() -> str:
        return "seen"

    assert pipes.serve(server_of(look), request(1, "look"), end_input=False) == 0


def test_a_client_that_is_cut_off_is_a_failure(
    pipes: Pipes, caplog: pytest.LogCaptureFixture
) -> None:
    server = Server("served")

    @server.tool
    async def flood() -> str:
        """Notify without end."""
        for _ in range(10_000):
            server.notify("notifications/x-flood")
        return "flooded"

    # A client of the handshake era: the other one is told nothing that it did not ask for.
    params = {"protocolVersion": "2025-11-25", "capabilities": {}}
    greeting = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}
    assert pipes.serve(server, greeting, request(1, "flood"), end_input=False) == 1
    assert "serving ended: the peer lets broadcasts pile up" in caplog.text


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_signal_has_the_code_that_a_shell_expects(
    pipes: Pipes, number: signal.Signals, code: int
) -> None:
    async def stop() -> str:
        signal.raise_signal(number)
        await asyncio.Event().wait()
        return "never"

    assert pipes.serve(server_of(stop), request(1, "stop"), end_input=False) == code


def test_a_server_that_refuses_to_start_is_not_served(pipes: Pipes) -> None:
    server = Server()

    @server.tool(destructive=True)
    def wipe() -> str:
        """Wipe."""
        return "wiped"

    with pytest.raises(ConfigurationError, match="refuses to start"):
        pipes.serve(server)
    assert pipes.answers() == []


@pytest.mark.parametrize("error", [OSError, SystemExit])
def test_a_lifespan_that_fails_is_told_as_the_users(
    pipes: Pipes, error: type[BaseException]
) -> None:
    """ours: docs/cli.md: it does not start, whatever it raised."""

    @asynccontextmanager
    async def lifespan(server: Server) -> AsyncIterator[None]:
        if server.name == "served":
            raise error("no database")
        yield

    told = rf"^served failed to start: {error.__name__}: no database \(\S+:\d+\)$"
    with pytest.raises(ConfigurationError, match=told):
        pipes.serve(Server("served", lifespan=lifespan))


def test_a_lifespan_that_never_yields_is_told(pipes: Pipes) -> None:
    @asynccontextmanager
    async def lifespan(server: Server) -> AsyncIterator[None]:
        if server.name == "other":
            yield

    told = "^served failed to start: RuntimeError: generator didn't yield$"
    with pytest.raises(ConfigurationError, match=told):
        pipes.serve(Server("served", lifespan=lifespan))


def test_a_start_that_is_cancelled_is_no_failure(pipes: Pipes) -> None:
    @asynccontextmanager
    async def lifespan(server: Server) -> AsyncIterator[None]:
        signal.raise_signal(signal.SIGTERM)
        await asyncio.Event().wait()
        yield

    assert pipes.serve(Server("served", lifespan=lifespan)) == 143


@pytest.mark.parametrize("error", [OSError, SystemExit])
def test_a_lifespan_that_fails_at_the_end_is_told_as_the_users(
    pipes: Pipes, capsys: pytest.CaptureFixture[str], error: type[BaseException]
) -> None:
    """ours: docs/cli.md: a failure, and no exit code of the user's choice."""

    @asynccontextmanager
    async def lifespan(server: Server) -> AsyncIterator[None]:
        yield
        raise error("no database")

    assert pipes.serve(Server("served", lifespan=lifespan)) == 1
    sentence = capsys.readouterr().err
    assert sentence.startswith(f"raxol-mcp: served failed: {error.__name__}: no database (")
    assert sentence.count("\n") == 1


def test_a_failure_of_ours_is_not_hidden(pipes: Pipes, monkeypatch: pytest.MonkeyPatch) -> None:
    error = RuntimeError("a bug")

    async def serve_stdio(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(serving, "serve_stdio", serve_stdio)
    monkeypatch.setattr(serving, "blame", lambda _: None)
    with pytest.raises(RuntimeError) as caught:
        pipes.serve(Server())
    assert caught.value is error


def test_ctrl_c_before_serving_has_its_code(pipes: Pipes, monkeypatch: pytest.MonkeyPatch) -> None:
    async def serve_stdio(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(serving, "serve_stdio", serve_stdio)
    assert pipes.serve(Server()) == 130


def test_every_step_of_the_end_has_a_bound(pipes: Pipes) -> None:
    """ours: docs/cli.md. First the stop of the server, then what is left of the process."""

    async def look() -> str:
        return "seen"

    pipes.serve(server_of(look), request(1, "look"))
    assert pipes.ended == [(10.0, 1), (1.0, 0)]


def test_without_a_process_to_end_it_only_serves(pipes: Pipes) -> None:
    os.close(pipes.to_server)
    thread = Thread(target=serving.serve, args=(Server(), pipes.stdin_fd, pipes.stdout_fd))
    thread.start()
    thread.join()
    assert pipes.answers() == []


class PatientServer(Server):
    """A server that notes how long its stop may take."""

    within = 0.0

    async def stop(self, *, within: float = 5.0) -> None:
        self.within = within
        await super().stop(within=within)


def test_work_that_had_its_drain_time_is_not_waited_for_again(pipes: Pipes) -> None:
    server = PatientServer()
    pipes.serve(server)
    assert server.within == 1.0


def test_a_signal_leaves_work_the_time_to_end(pipes: Pipes) -> None:
    server = PatientServer()

    @server.tool
    async def stop() -> str:
        """Stop."""
        signal.raise_signal(signal.SIGTERM)
        return "stopped"

    pipes.serve(server, request(1, "stop"), end_input=False)
    assert server.within == 5.0


# -- over HTTP --------------------------------------------------------------------------------


class Signaller(io.StringIO):
    """A stderr that answers the address with a signal: serving has begun then."""

    def __init__(self, number: signal.Signals) -> None:
        super().__init__()
        self.number = number

    def flush(self) -> None:
        signal.raise_signal(self.number)


def guarded() -> PatientServer:
    """Return a server that may be served over a network."""
    return PatientServer(
        "served",
        authorizer=allow_all(),
        authorizer_source="configured",
        read_authorizer=allow_all(),
    )


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_over_http_a_signal_has_the_code_that_a_shell_expects(
    number: signal.Signals, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended: list[tuple[float, int]] = []
    server = guarded()
    told = Signaller(number)
    monkeypatch.setattr("sys.stderr", told)
    assert code == serving.serve_network(
        server,
        Network(http=True, port=0, path="/here"),
        end_process=lambda seconds, code: ended.append((seconds, code)),
    )
    address = r"raxol-mcp: serving served at http://127\.0\.0\.1:[0-9]+/here\n"
    assert re.fullmatch(address, told.getvalue())
    assert server.within == 1.0, "what runs has had the drain time already"
    assert ended == [(10.0, 1), (1.0, code)]


def test_a_port_that_is_taken_is_told() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(ConfigurationError, match=f"cannot listen on 127.0.0.1 port {port}"):
            serving.serve_network(guarded(), Network(http=True, port=port))


def test_every_refusal_is_told_at_once() -> None:
    """ours: docs/cli.md. One sentence, so that nobody meets them one by one."""
    with pytest.raises(ConfigurationError) as caught:
        serving.serve_network(Server("open"), Network(http=True, host="0.0.0.0"))
    assert str(caught.value).startswith("binding to 0.0.0.0 without authentication")
    assert "; open is not served over a network" in str(caught.value)


def test_the_loop_is_uvloops_where_that_is_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """ours: docs/dependencies.md."""
    monkeypatch.setattr("sys.stderr", Signaller(signal.SIGTERM))
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "uvloop.py").write_text(
        "from asyncio import SelectorEventLoop\n"
        "made = []\n"
        "def new_event_loop():\n"
        "    made.append(SelectorEventLoop())\n"
        "    return made[0]\n"
    )
    serving.serve_network(guarded(), Network(http=True, port=0))
    assert len(import_module("uvloop").made) == 1

"""What a client takes for a spec, and what it does before and without a connection.

Sources: client-2.8.0 §Usage; the rules of the project where that page is silent.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any, Final

import pytest

from raxol_mcp import Client, ClientSpec, InvalidSpec, NoHttpClient
from raxol_mcp.client.opening import Tables
from raxol_mcp.transports.http_client import dialer as http_dialer
from tests.client.misbehaviour.attempts import Error, attempt, list_tools
from tests.client.peers.held import BOUND, Held
from tests.client.peers.http_peer import HttpPeer
from tests.client.peers.script import Message, script

URL: Final = "https://e.test/mcp"
SECRET: Final = "s3cr3t-v4lue"
# Everything that may hold one, and in what it is not seen at once.
SECRETS: Final[Message] = {
    "url": f"https://user:{SECRET}@e.test:8443/mcp?key={SECRET}",
    "headers": {"authorization": f"Bearer {SECRET}", "x-key": SECRET},
    "command": "server",
    "args": ["--token", SECRET],
    "env": {"API_KEY": SECRET},
}


@pytest.mark.parametrize("pairs", [False, True], ids=["mapping", "pairs"])
@pytest.mark.parametrize(
    "target",
    [
        {"url": URL},
        {},
        {"command": None, "url": None},
        {"command": None},
        {"url": ""},
        {"url": 7},
        {"command": ["server"]},
    ],
    ids=str,
)
def test_a_spec_names_one_of_the_two_and_nothing_is_started(
    target: Message, pairs: bool, tmp_path: Path
) -> None:
    """client-behaviour checks 1, 2: both and neither, in either way to write a spec."""
    started = tmp_path / "started"
    program = f"open({str(started)!r}, 'w')"
    options: Message = {"name": "x", "command": sys.executable, "args": ["-c", program]} | target
    if not target:
        del options["command"]
    given: Any = list(options.items()) if pairs else options

    async def tries() -> None:
        before = Held.now()
        with pytest.raises(InvalidSpec) as refused:
            Client(given)
        assert refused.value.tag == "invalid_spec"
        assert before.more() == []

    asyncio.run(tries())
    assert not started.exists()


@pytest.mark.parametrize("pairs", [False, True], ids=["mapping", "pairs"])
def test_a_refused_spec_is_told_with_its_names_and_without_its_values(pairs: bool) -> None:
    """client-behaviour check 3; client-2.8.0 §Usage: "with its header values redacted"."""
    lists = {name: list(SECRETS[name].items()) for name in ("headers", "env")} if pairs else {}
    with pytest.raises(InvalidSpec) as refused:
        Client({"name": "x", **SECRETS, **lists})
    for said in (str(refused.value), repr(refused.value), repr(refused.value.args)):
        assert SECRET not in said
        assert "Bearer" not in said
        assert "--token" not in said
    said = str(refused.value)
    for shown in ("authorization", "x-key", "API_KEY", "https://e.test:8443/mcp", "server"):
        assert shown in said
    # How many arguments there are is known, and nothing else of them.
    assert said.count("[redacted]") >= 5


@pytest.mark.parametrize("target", ["command", "url"])
def test_a_client_shows_no_secret_wherever_it_is_printed(target: str) -> None:
    """client-behaviour checks 3, 63: the spec, the client, and its state."""
    left_out = {"command": ("url", "headers"), "url": ("command", "args", "env")}[target]
    options = {name: value for name, value in SECRETS.items() if name not in left_out}
    client = Client({"name": "x", **options}, tables=Tables())
    for shown in (client, client.spec, client.status()):
        for said in (repr(shown), str(shown), f"{shown}"):
            assert SECRET not in said
            assert "--token" not in said


@pytest.mark.parametrize("command", ["", " ", 0, False, []], ids=repr)
def test_an_empty_command_is_not_taken_for_none(command: object) -> None:
    """client-behaviour check 4: never a silent preference for the other."""
    with pytest.raises(InvalidSpec):
        Client({"name": "x", "command": command, "url": URL})
    assert Client({"name": "x", "command": None, "url": URL}, tables=Tables()).spec.url == URL


@pytest.mark.parametrize("name", [{}, {"name": None}, {"name": ""}, {"name": 7}], ids=str)
def test_a_spec_without_a_name_is_refused(name: Message) -> None:
    """client-behaviour check 5."""
    with pytest.raises(InvalidSpec, match="name"):
        Client({**name, "command": "server"})


def test_a_misspelt_option_is_named(tmp_path: Path) -> None:
    """ours: a bound that is misspelt bounds nothing."""
    with pytest.raises(InvalidSpec, match="call_timout"):
        Client({"name": "x", "command": "server", "call_timout": 1.0})
    with pytest.raises(InvalidSpec, match="command"):
        ClientSpec.of({"name": "x", "comand": str(tmp_path)})


def test_without_the_library_a_url_is_refused_and_a_command_is_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """client-behaviour check 6; client-2.8.0 §Usage."""
    monkeypatch.setattr(http_dialer, "find_spec", lambda _: None)
    with pytest.raises(NoHttpClient) as refused:
        Client({"name": "x", "url": URL})
    assert refused.value.tag == "no_http_client"
    Client({"name": "x", "command": "server"})
    # A spec that cannot be meant is one with the library and without it.
    with pytest.raises(InvalidSpec):
        Client({"name": "x", "url": URL, "command": "server"})


def test_a_program_that_is_not_there_is_no_error_of_the_start(tmp_path: Path) -> None:
    """client-behaviour check 7: known to whoever asks, and the owner lives."""

    async def tries() -> None:
        before = Held.now()
        spec = {"name": "x", "command": str(tmp_path / "nothing"), "reconnect": BOUND}
        client = Client({**spec, "fail_fast": True}, tables=Tables())
        await client.start()
        path = ("spawn_failed", "enoent")
        assert await attempt(client.await_ready(timeout=BOUND)) == Error("ConnectFailed", path)
        assert await attempt(list_tools(client)) == Error("ConnectFailed", path)
        status = client.status()
        assert (status.status, status.version, status.tools) == ("closed", None, None)
        assert status.retry_in is not None
        await client.stop()
        await before.settled()

    asyncio.run(tries())


def test_plain_http_is_not_dialled() -> None:
    """client-behaviour check 8, as ruled: but to this machine, with `allow_private`."""

    async def tries() -> None:
        before = Held.now()
        async with HttpPeer(script("modern")) as peer:
            spec = {"name": "x", "url": peer.url, "reconnect": BOUND}
            client = Client({**spec, "fail_fast": True}, tables=Tables())
            await client.start()
            path = ("blocked", "invalid_url")
            assert await attempt(client.await_ready(timeout=BOUND)) == Error("ConnectFailed", path)
            assert await attempt(list_tools(client)) == Error("ConnectFailed", path)
            assert client.status().status == "closed"
            await client.stop()
            assert peer.raw == []
            async with Client({**spec, "allow_private": True}, tables=Tables()) as allowed:
                assert [tool.name for tool in await allowed.list_tools()] == ["echo", "slow"]
        await before.settled()

    asyncio.run(tries())

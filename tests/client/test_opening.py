"""client/opening.py: which transport a spec means, and what the core is told of it."""

from __future__ import annotations

import subprocess
import sys

import pytest

from raxol_mcp.client.answers import Handlers
from raxol_mcp.client.opening import Tables, dialer_of, options_of, shared_tables
from raxol_mcp.client.spec import ClientSpec
from raxol_mcp.core.verdicts import Verdicts
from raxol_mcp.core.window import Policy
from raxol_mcp.errors import NoHttpClient
from raxol_mcp.transports.http_client import dialer as http_dialer
from raxol_mcp.transports.http_client import tables as http_tables
from raxol_mcp.transports.http_client.dialer import HttpDialer
from raxol_mcp.transports.subprocess import SubprocessDialer
from raxol_mcp.version import VERSION
from raxol_mcp.wire.meta import EraName

SECRET = "s3cr3t-v4lue"
LOCAL = ClientSpec("x", command="run", args=("--token", SECRET), env={"KEY": SECRET}, cwd="/srv")
HOSTED = ClientSpec("x", url="https://e.test/mcp", headers={"authorization": SECRET})


def test_a_command_is_started_and_a_url_is_talked_to() -> None:
    local, hosted = dialer_of(LOCAL, Tables()), dialer_of(HOSTED, Tables())
    assert isinstance(local, SubprocessDialer)
    assert isinstance(hosted, HttpDialer)
    assert local.verdict_key == ("stdio", "run", ("--token", SECRET), "/srv")
    assert hosted.verdict_key == ("http", "https://e.test:443", "/mcp")
    assert (local.closing_cancels, hosted.closing_cancels) == (False, True)
    assert SECRET not in f"{local!r} {hosted!r}"


def test_a_url_needs_the_library_that_speaks_http(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_dialer, "find_spec", lambda _: None)
    with pytest.raises(NoHttpClient):
        dialer_of(HOSTED, Tables())
    assert isinstance(dialer_of(LOCAL, Tables()), SubprocessDialer)


def test_a_program_is_started_without_what_speaks_http() -> None:
    """ours: it takes as long to load as everything else"""
    code = (
        "import sys\n"
        "from raxol_mcp.client.opening import Tables, dialer_of\n"
        "from raxol_mcp.client.spec import ClientSpec\n"
        "dialer_of(ClientSpec('x', command='run'), Tables())\n"
        "print([name for name in sys.modules if 'aiohttp' in name or 'http_client' in name])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


@pytest.mark.parametrize(("call_timeout", "stall_timeout"), [(30.0, 60.0), (90.0, 90.0)])
def test_the_options_of_a_program_reach_its_transport(
    monkeypatch: pytest.MonkeyPatch, call_timeout: float, stall_timeout: float
) -> None:
    given: dict[str, object] = {}

    class Noted(SubprocessDialer):
        def __init__(self, command: str, args: tuple[str, ...], **options: object) -> None:
            given.update(options, command=command, args=args)

    monkeypatch.setattr("raxol_mcp.transports.subprocess.SubprocessDialer", Noted)
    spec = ClientSpec(
        "x",
        command="run",
        args=("a", SECRET),
        env={"KEY": "value"},
        inherit_env=False,
        drop_env=("B",),
        max_message_bytes=4096,
        call_timeout=call_timeout,
    )
    dialer_of(spec, Tables())
    mask = given.pop("mask")
    assert callable(mask)
    assert SECRET not in mask(f"usage: {SECRET}")
    assert given == {
        "command": "run",
        "args": ("a", SECRET),
        "env": {"KEY": "value"},
        "cwd": None,
        "inherit_env": False,
        "drop_env": ("B",),
        "max_line_bytes": 4096,
        "stall_timeout": stall_timeout,
    }


def test_the_options_of_a_url_reach_its_transport(monkeypatch: pytest.MonkeyPatch) -> None:
    given: dict[str, object] = {}

    class Noted(HttpDialer):
        def __init__(self, url: str, **options: object) -> None:
            given.update(options, url=url)

    monkeypatch.setattr(http_dialer, "HttpDialer", Noted)
    spec = ClientSpec(
        "x",
        url="https://e.test/mcp",
        headers={"authorization": SECRET},
        allow_private=True,
        max_message_bytes=4096,
        connect_timeout=1.0,
        chunk_timeout=2.0,
    )
    own = http_tables.Tables()
    dialer_of(spec, Tables(http=own))
    assert given.pop("tables") is own
    assert given == {
        "url": "https://e.test/mcp",
        "headers": {"authorization": SECRET},
        "allow_private": True,
        "max_message_bytes": 4096,
        "connect_timeout": 1.0,
        "chunk_timeout": 2.0,
    }


# -- what clients share ---------------------------------------------------------------------------


def test_clients_of_a_process_share_tables_unless_they_are_given_their_own() -> None:
    """docs/client.md §Apart from other clients: the eras, and the origins that do not answer"""

    def breakers(tables: Tables) -> object:
        dialer = dialer_of(HOSTED, tables)
        assert isinstance(dialer, HttpDialer)
        return dialer._options.tables

    shared, own = shared_tables(), Tables()
    assert shared_tables() is shared
    assert own.verdicts is not shared.verdicts
    assert breakers(shared) is breakers(shared) is http_tables.shared_tables()
    assert breakers(own) is breakers(own)
    assert breakers(own) is not breakers(shared)
    verdicts = Verdicts()
    assert Tables(verdicts=verdicts).verdicts is verdicts


# -- what the core is told ------------------------------------------------------------------------


def test_the_core_is_told_what_the_spec_says() -> None:
    spec = ClientSpec(
        "x",
        command="run",
        concurrency="serialized",
        pool_size=3,
        queue_limit=4,
        call_timeout=5.0,
        init_timeout=6.0,
        probe_timeout=7.0,
        answer_timeout=8.0,
        reconnect=9.0,
        fail_fast=True,
        era="stateless",
        era_ttl=10.0,
    )
    found = options_of(spec, dialer_of(spec, Tables()), Handlers())
    assert found.policy is Policy.SERIALIZED
    assert (found.pool_size, found.queue_limit) == (3, 4)
    assert (found.call_timeout, found.init_timeout, found.probe_timeout) == (5.0, 6.0, 7.0)
    assert (found.answer_timeout, found.reconnect, found.era_ttl) == (8.0, 9.0, 10.0)
    assert (found.fail_fast, found.era) == (True, EraName.STATELESS)
    assert found.client_info == {"name": "raxol-mcp", "version": VERSION}


def test_what_the_spec_leaves_open_is_left_open() -> None:
    """ours: the era decides about the window, the server about the era"""
    found = options_of(LOCAL, dialer_of(LOCAL, Tables()), Handlers())
    assert (found.policy, found.era) == (None, None)


@pytest.mark.parametrize(("spec", "probe"), [(LOCAL, LOCAL.probe_timeout), (HOSTED, None)])
def test_only_on_a_pipe_does_silence_decide_about_the_era(
    spec: ClientSpec, probe: float | None
) -> None:
    """ours: over HTTP a server that is slow is unwell, not old"""
    dialer = dialer_of(spec, Tables())
    found = options_of(spec, dialer, Handlers())
    assert found.probe_timeout == probe
    assert (found.kind, found.verdict_key) == (dialer.kind, dialer.verdict_key)
    assert found.closing_cancels == dialer.closing_cancels


def test_only_what_has_a_handler_is_declared() -> None:
    """MCP basic/lifecycle §Capability Negotiation"""
    dialer = dialer_of(LOCAL, Tables())
    none = options_of(LOCAL, dialer, Handlers())
    assert (none.handshake_capabilities, none.asked_methods) == ({}, frozenset())
    some = options_of(LOCAL, dialer, Handlers(roots=[]))
    assert some.handshake_capabilities == some.stateless_capabilities == {"roots": {}}
    assert some.asked_methods == {"roots/list"}

"""From a spec to the transport that reaches its server, and what the clients of a process share.

The one place of the client that knows its transports. HTTP is imported by whoever needs it: it
takes as long to load as everything else.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Final

from raxol_mcp.core.client_ledger import ClientOptions
from raxol_mcp.core.verdicts import Verdicts
from raxol_mcp.core.window import Policy
from raxol_mcp.version import VERSION
from raxol_mcp.wire.meta import EraName

if TYPE_CHECKING:
    from raxol_mcp.client.answers import Handlers
    from raxol_mcp.client.spec import ClientSpec
    from raxol_mcp.transports.http_client.tables import Tables as HttpTables
    from raxol_mcp.transports.link import Dialer

__all__ = ["Tables", "dialer_of", "options_of", "shared_tables"]

_STALL_TIMEOUT: Final = 60.0  # seconds; a synchronous server reads nothing while it works


class Tables:
    """What clients of one process know together: eras of servers, and which origins fail.

    Give a client tables of its own to keep it apart from the others, in a test for instance.
    `http` None: made when a server is first reached over HTTP.
    """

    def __init__(self, *, verdicts: Verdicts | None = None, http: HttpTables | None = None) -> None:
        self.verdicts = Verdicts() if verdicts is None else verdicts
        self.http = http


@cache
def shared_tables() -> Tables:
    """Return the tables of this process."""
    return Tables()


def dialer_of(spec: ClientSpec, tables: Tables) -> Dialer:
    """Make what reaches the server of `spec`. Raises `NoHttpClient`. Nothing is started."""
    if spec.command is not None:
        from raxol_mcp.transports.subprocess import SubprocessDialer

        return SubprocessDialer(
            spec.command,
            spec.args,
            env=dict(spec.env),
            cwd=spec.cwd,
            inherit_env=spec.inherit_env,
            drop_env=spec.drop_env,
            max_line_bytes=spec.max_message_bytes,
            stall_timeout=max(_STALL_TIMEOUT, spec.call_timeout),
            mask=spec.secrets().masked,
        )
    from raxol_mcp.transports.http_client import tables as http_tables
    from raxol_mcp.transports.http_client.dialer import HttpDialer

    assert spec.url is not None, "a spec has a command or a url"
    if tables.http is None:
        shared = tables is shared_tables()
        tables.http = http_tables.shared_tables() if shared else http_tables.Tables()
    return HttpDialer(
        spec.url,
        headers=dict(spec.headers),
        allow_private=spec.allow_private,
        max_message_bytes=spec.max_message_bytes,
        connect_timeout=spec.connect_timeout,
        chunk_timeout=spec.chunk_timeout,
        tables=tables.http,
    )


def options_of(spec: ClientSpec, dialer: Dialer, handlers: Handlers) -> ClientOptions:
    """Say to the core what the spec, the transport and the user's handlers say.

    Over HTTP nothing but an answer decides about the era: a server that is slow there is unwell.
    """
    capabilities = handlers.capabilities()
    return ClientOptions(
        kind=dialer.kind,
        verdict_key=dialer.verdict_key,
        closing_cancels=dialer.closing_cancels,
        client_info={"name": "raxol-mcp", "version": VERSION},
        handshake_capabilities=capabilities,
        stateless_capabilities=capabilities,
        asked_methods=handlers.asked_methods,
        policy=None if spec.concurrency is None else Policy(spec.concurrency),
        pool_size=spec.pool_size,
        queue_limit=spec.queue_limit,
        call_timeout=spec.call_timeout,
        init_timeout=spec.init_timeout,
        probe_timeout=None if dialer.kind == "http" else spec.probe_timeout,
        answer_timeout=spec.answer_timeout,
        reconnect=spec.reconnect,
        fail_fast=spec.fail_fast,
        era=None if spec.era is None else EraName(spec.era),
        era_ttl=spec.era_ttl,
    )

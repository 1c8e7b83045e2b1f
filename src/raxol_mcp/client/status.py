"""Where a client stands at one moment, put together from what its core knows. Changes nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from raxol_mcp.client.failures import masked
from raxol_mcp.client.results import ClientStatus
from raxol_mcp.core.session import SessionState

if TYPE_CHECKING:
    from collections.abc import Callable

    from raxol_mcp.core.client import ClientCore

__all__ = ["status_of"]


def status_of(
    name: str,
    core: ClientCore,
    *,
    tools: int | None,
    now: Callable[[], float],
    mask: Callable[[str], str],
) -> ClientStatus:
    """Describe the client `name`; `tools` counts those of its last list.

    `mask` hides the secrets of the spec in what others wrote. `now` is only asked while an attempt
    is planned: before its start a client has no clock.
    """
    session, ledger = core.session, core.ledger
    facts, window, retry_at = ledger.facts, ledger.window, session.retry_at
    ready = session.state is SessionState.READY
    return ClientStatus(
        name=name,
        status=session.state.value,
        version=None if facts is None else facts.version,
        era=None if facts is None else facts.era.value,
        concurrency=window.policy.value if ready else None,
        tools=tools,
        pending=len(window.held),
        queued=window.queued,
        reason=None if session.reason is None else masked(session.reason, mask),
        retry_in=None if retry_at is None else max(retry_at - now(), 0.0),
        server=None if facts is None else facts.server,
        instructions=None if facts is None else facts.instructions,
        capabilities={} if facts is None else facts.capabilities,
    )

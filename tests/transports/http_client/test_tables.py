"""What counts for and against an origin."""

from __future__ import annotations

import pytest

from raxol_mcp.core.breaker import BreakerState
from raxol_mcp.transports.http_client.tables import Tables, Verdict, shared_tables, verdict_of


@pytest.mark.parametrize(
    ("verdict", "statuses"),
    [
        (Verdict.WORKS, [200, 202, 204, 302, 400, 401, 403, 404, 405, 406, 409, 413, 422, 501]),
        (Verdict.FAILS, [408, 500, 502, 503, 504, 599]),
        (Verdict.SILENT, [429]),
    ],
)
def test_only_what_says_something_about_the_origin_counts(
    verdict: Verdict, statuses: list[int]
) -> None:
    """Ours: one client's refused credential must not shut out the others"""
    assert [verdict_of(status) for status in statuses] == [verdict] * len(statuses)


def test_a_process_has_one_set_of_tables() -> None:
    """Ours: all clients of an origin learn together"""
    assert shared_tables() is shared_tables()


def test_five_failures_open_a_breaker_for_half_a_minute() -> None:
    """Check 64"""
    breakers = Tables().breakers
    for _ in range(5):
        assert breakers.admits("origin", 0.0)
        breakers.failed("origin", 0.0)
    assert not breakers.admits("origin", 29.9)
    assert breakers.admits("origin", 30.0, call="probe")
    assert not breakers.admits("origin", 30.0, call="another")
    assert breakers.state("origin") is BreakerState.HALF_OPEN

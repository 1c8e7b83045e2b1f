"""Greeting a server: what is sent, in which order, and what each answer leads to."""

from __future__ import annotations

import pytest

from raxol_mcp.core.verdicts import Verdict, Verdicts
from raxol_mcp.errors import Reason
from raxol_mcp.wire.jsonrpc import Response
from raxol_mcp.wire.meta import (
    META_CLIENT_CAPABILITIES,
    META_CLIENT_INFO,
    META_LOG_LEVEL,
    META_VERSION,
    EraName,
)
from tests.core.client_support import DISCOVERED, KEY, Told
from tests.promises import promise

HANDSHAKE = Verdict(EraName.HANDSHAKE, "2025-11-25")
STATELESS = Verdict(EraName.STATELESS, "2026-07-28", discovered=DISCOVERED)
TWO = Verdict(EraName.HANDSHAKE, "2024-11-05", two_endpoints=True)
GREETED = {"protocolVersion": "2025-11-25"}
NOT_FOUND = Reason("http", 404)


def knowing(verdict: Verdict, *, at: float = 100.0) -> Verdicts:
    verdicts = Verdicts()
    verdicts.put(KEY, verdict, at)
    return verdicts


def verdict_of(told: Told) -> Verdict | None:
    return told.verdicts.get(KEY, ttl=900.0, now=told.now)


# -- the probe ------------------------------------------------------------------------------------


@promise("client.stateless")
def test_a_stateless_server_is_ready_after_one_question() -> None:
    """client-behaviour check 10; MCP 2026-07-28 basic/versioning."""
    told = Told()
    assert told.start() == ["open 1"]
    assert told.opened() == ["send 1 server/discover"]
    assert told.result(1, DISCOVERED) == [
        "agreed stateless 2026-07-28",
        "begin stateless 2026-07-28",
    ]
    assert told.records() == ["connected"]
    assert told.core.ledger.facts is not None
    assert told.core.ledger.facts.capabilities == {"tools": {}}
    assert verdict_of(told) == STATELESS


def test_the_probe_says_everything_that_a_stateless_request_says() -> None:
    """MCP 2026-07-28 basic §_meta: strict servers refuse a request without."""
    told = Told()
    told.core.ledger.log_level = "error"
    told.until_probed()
    assert told.params(1) == {
        "_meta": {
            META_VERSION: "2026-07-28",
            META_CLIENT_INFO: {"name": "test"},
            META_CLIENT_CAPABILITIES: {"elicitation": {}},
            META_LOG_LEVEL: "error",
        }
    }


@promise("client.greets")
def test_a_handshake_server_is_probed_initialized_and_told_that_we_know() -> None:
    """client-behaviour checks 9, 11; ours: ADR-0024."""
    told = Told().until_probed()
    assert told.error(1, -32601) == ["send 2 initialize"]
    assert told.params(2) == {
        "protocolVersion": "2025-11-25",
        "capabilities": {"roots": {}},
        "clientInfo": {"name": "test"},
    }
    assert told.result(2, GREETED) == [
        "agreed handshake 2025-11-25",
        "send 3 notifications/initialized",
    ]
    assert told.params(3) == {}
    assert told.core.session.state.value == "initializing"
    assert told.sent(3) == ["begin handshake 2025-11-25"]
    assert verdict_of(told) == HANDSHAKE


def test_another_notification_that_is_delivered_ends_no_greeting() -> None:
    told = Told().until_probed()
    told.error(1, -32601)
    assert told.sent(3) == []
    told.result(2, GREETED)
    assert told.sent(2) == []
    assert told.core.session.state.value == "initializing"


@pytest.mark.parametrize("status", [401, 403, 408, 429, 500, 503, 302])
def test_what_says_that_a_server_is_unwell_is_no_verdict(status: int) -> None:
    """client-behaviour checks 14, 16; BC-113."""
    told = Told("http").until_probed()
    assert told.failed(1, Reason("http", status)) == ["close 1"]
    assert told.core.session.reason == Reason("http", status)
    assert verdict_of(told) is None


@pytest.mark.parametrize("status", [400, 404, 405, 406, 501])
def test_what_a_server_cannot_have_heard_of_leads_to_initialize(status: int) -> None:
    """client-behaviour checks 15, 16, as MCP 2026-07-28 basic/versioning has it."""
    told = Told("http").until_probed()
    assert told.failed(1, Reason("http", status)) == ["send 2 initialize"]


def test_a_server_that_refuses_our_version_but_speaks_it_is_asked_once_more() -> None:
    told = Told().until_probed()
    assert told.error(1, -32022, {"supported": ["2026-07-28"]}) == ["send 2 server/discover"]
    assert told.result(1, DISCOVERED) == []
    assert told.records() == ["stray_answer"]
    assert told.error(2, -32022, {"supported": 7}) == ["close 1"]
    assert told.core.session.reason == Reason(
        "jsonrpc", -32022, error={"code": -32022, "message": "no", "data": {"supported": 7}}
    )


def test_a_server_that_does_not_let_us_discover_is_stateless_all_the_same() -> None:
    """MCP 2026-07-28 basic §Error Codes: -32021 is of that era alone."""
    told = Told().until_probed()
    assert told.error(1, -32021)[-1] == "begin stateless 2026-07-28"
    assert verdict_of(told) == Verdict(EraName.STATELESS, "2026-07-28")


def test_the_second_probe_has_its_whole_time() -> None:
    told = Told().until_probed()
    told.after(4.0)
    told.error(1, -32022)
    assert told.after(4.9) == []
    assert told.after(0.1) == ["send 3 initialize"]


# -- silence --------------------------------------------------------------------------------------


def test_silence_on_a_pipe_leads_to_initialize() -> None:
    """ours: ADR-0023."""
    told = Told().until_probed()
    assert told.after(4.9) == []
    assert told.after(0.1) == ["send 2 initialize"]


def test_a_yes_that_comes_after_the_probe_was_given_up_still_counts() -> None:
    """ours: ADR-0023: a server that only starts slowly is not taken for an old one."""
    told = Told().until_probed()
    told.after(5.0)
    assert told.result(1, DISCOVERED) == [
        "agreed stateless 2026-07-28",
        "begin stateless 2026-07-28",
    ]
    assert verdict_of(told) == STATELESS
    assert told.result(2, GREETED) == []
    assert told.records() == ["stray_answer"]


def test_a_no_that_comes_late_changes_nothing() -> None:
    told = Told().until_probed()
    told.after(5.0)
    assert told.error(1, -32601) == []
    assert told.error(1, -32601) == []
    assert told.records() == ["stray_answer"]
    assert told.result(2, GREETED)[0] == "agreed handshake 2025-11-25"


def test_a_yes_after_initialize_was_answered_is_too_late() -> None:
    """Two eras on one session would be one too many."""
    told = Told().until_probed()
    told.after(5.0)
    told.result(2, GREETED)
    assert told.result(1, DISCOVERED) == []
    assert told.sent(3) == ["begin handshake 2025-11-25"]


def test_over_http_silence_decides_nothing() -> None:
    """ours: ADR-0023: a server that is slow there is unwell."""
    told = Told("http").until_probed()
    assert told.after(59.9) == []
    assert told.after(0.1) == ["close 1"]
    assert told.core.session.reason == Reason("initialization_failed", cause=Reason("timeout"))
    assert verdict_of(told) is None


@promise("recovery.handshake")
def test_a_greeting_that_takes_too_long_has_failed() -> None:
    """client-behaviour check 20."""
    told = Told(init_timeout=0.03).until_probed()
    told.error(1, -32601)
    assert told.after(0.03) == ["close 1"]
    assert told.core.session.reason is not None
    assert told.core.session.reason.path == ("initialization_failed", "timeout")
    assert len(told.core.ledger.window.held) == 0


def test_a_greeting_may_take_too_long_at_its_very_end() -> None:
    """client-behaviour check 20: `initialized` is not delivered."""
    told = Told().until_probed()
    told.error(1, -32601)
    told.result(2, GREETED)
    assert told.after(60.0) == ["close 1"]
    assert told.core.session.reason is not None
    assert told.core.session.reason.path == ("initialization_failed", "timeout")


def test_a_late_timer_ends_probe_and_greeting_at_once() -> None:
    told = Told(init_timeout=3.0).until_probed()
    assert told.after(1000.0) == ["close 1"]
    told = Told(init_timeout=6.0).until_probed()
    assert told.after(1000.0) == ["send 2 initialize", "close 1"]


def test_a_call_timeout_below_the_time_to_start_fails_no_greeting() -> None:
    """client-behaviour check 21."""
    told = Told(call_timeout=0.01).until_probed()
    told.error(1, -32601)
    assert told.after(50.0) == []
    assert told.result(2, GREETED)[0] == "agreed handshake 2025-11-25"


# -- a server that ends when it is probed ---------------------------------------------------------


def test_a_server_that_exits_on_the_probe_is_started_again_and_initialized() -> None:
    """BC-111; MCP 2026-07-28 basic/transports/stdio."""
    told = Told().until_probed()
    assert told.lost("server_exited", 0) == ["close 1", "open 2"]
    assert told.opened() == ["send 2 initialize"]
    told.result(2, GREETED)
    assert told.sent(3) == ["begin handshake 2025-11-25"]
    assert verdict_of(told) == HANDSHAKE


def test_a_slow_server_that_exits_on_the_probe_is_started_again_all_the_same() -> None:
    """Silence was taken for a no, and `initialize` sent behind the probe it then died of."""
    told = Told().until_probed()
    told.after(5.0)
    assert told.lost("server_exited", 1) == ["close 1", "open 2"]
    assert told.opened() == ["send 3 initialize"]


def test_a_server_that_exits_every_time_is_started_again_once() -> None:
    """BC-111: no loop."""
    told = Told().until_probed()
    told.lost("server_exited", 0)
    told.opened()
    assert told.lost("server_exited", 7) == ["close 2"]
    assert told.core.session.reason == Reason("server_exited", 7)
    assert told.after(1.0) == ["open 3"]
    assert told.opened() == ["send 3 server/discover"]


def test_a_server_that_exits_after_it_answered_the_probe_has_failed() -> None:
    told = Told().until_probed()
    told.error(1, -32601)
    assert told.lost("server_exited", 1) == ["close 1"]


def test_a_lost_connection_over_http_says_nothing_of_the_era() -> None:
    told = Told("http").until_probed()
    assert told.lost() == ["close 1"]


# -- initialize -----------------------------------------------------------------------------------


@pytest.mark.parametrize("result", ["ok", None, [], 1])
def test_an_initialize_result_that_is_none_fails(result: object) -> None:
    """client-behaviour check 18."""
    told = Told().until_probed()
    told.error(1, -32601)
    assert told.result(2, result) == ["close 1"]
    assert told.core.session.reason is not None
    assert told.core.session.reason.path == (
        "initialization_failed",
        "invalid_response",
        "initialize",
    )


def test_an_initialize_error_is_the_reason() -> None:
    """client-behaviour check 19."""
    told = Told().until_probed()
    told.error(1, -32601)
    assert told.error(2, -32602) == ["close 1"]
    assert told.core.session.reason is not None
    assert told.core.session.reason.path == ("initialization_failed", "jsonrpc", -32602)


def test_a_version_that_nobody_knows_ends_the_session() -> None:
    """client-behaviour check 17, as MCP basic/lifecycle §Version Negotiation has it."""
    told = Told().until_probed()
    told.error(1, -32601)
    assert told.result(2, {"protocolVersion": "2099-01-01"}) == ["close 1"]
    assert told.core.session.reason is not None
    assert told.core.session.reason.path == (
        "initialization_failed",
        "unsupported_version",
        "2099-01-01",
    )


@pytest.mark.parametrize("version", ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"])
def test_every_version_of_the_handshake_era_is_spoken(version: str) -> None:
    told = Told().until_probed()
    told.error(1, -32601)
    assert told.result(2, {"protocolVersion": version})[0] == f"agreed handshake {version}"


# -- notifications/initialized --------------------------------------------------------------------


def introduced() -> Told:
    told = Told("http").until_probed()
    told.failed(1, NOT_FOUND)
    told.result(2, GREETED)
    return told


@pytest.mark.parametrize("status", [400, 404, 405, 500])
def test_a_refused_initialized_is_no_matter(status: int) -> None:
    """ours: ADR-0024: servers answer notifications strangely."""
    assert introduced().failed(3, Reason("http", status)) == ["begin handshake 2025-11-25"]


@pytest.mark.parametrize(
    "reason", [Reason("session_rejected"), Reason("transport", "reset"), Reason("http", 401)]
)
def test_an_initialized_that_finds_no_session_fails_the_greeting(reason: Reason) -> None:
    """ours: ADR-0024: met with a back-off and not with a loop."""
    told = introduced()
    assert told.failed(3, reason) == ["close 1"]
    assert told.core.session.reason is not None
    assert told.core.session.reason.path == ("initialization_failed", *reason.path)


def test_a_response_to_a_notification_is_none() -> None:
    """JSON-RPC 2.0 §4.1."""
    told = introduced()
    assert told.received(Response(3, {})) == []
    assert told.core.session.state.value == "initializing"


# -- HTTP+SSE -------------------------------------------------------------------------------------


def refused(status: int = 405) -> Told:
    told = Told("http").until_probed()
    told.failed(1, NOT_FOUND)
    assert told.failed(2, Reason("http", status)) == ["close 1", "open 2 by two endpoints"]
    return told


def test_a_refused_initialize_leads_to_two_endpoints_once() -> None:
    """MCP 2025-11-25 basic/transports §Backwards Compatibility."""
    told = refused()
    assert told.opened() == ["send 3 initialize"]
    told.result(3, {"protocolVersion": "2024-11-05"})
    assert told.sent(4) == ["begin handshake 2024-11-05"]
    assert verdict_of(told) == TWO


def test_what_the_older_transport_says_matters_less_than_the_first_refusal() -> None:
    told = refused(404)
    assert told.lost("http", 405) == ["close 2"]
    assert told.core.session.reason is not None
    assert told.core.session.reason.path == ("initialization_failed", "http", 404)
    assert told.after(1.0) == ["open 3"]


def test_a_401_of_the_older_transport_is_final_all_the_same() -> None:
    """client-2.8.0 §Recovery."""
    told = refused(404)
    assert told.lost("http", 401) == ["close 2"]
    assert told.core.session.final
    assert told.after(1e6) == []


def test_a_refusal_over_two_endpoints_is_final_for_this_attempt() -> None:
    told = refused()
    told.opened()
    assert told.failed(3, Reason("http", 405)) == ["close 2"]
    assert told.after(1.0) == ["open 3"]


def test_a_session_over_two_endpoints_that_ends_was_one() -> None:
    told = refused()
    told.opened()
    told.result(3, {"protocolVersion": "2024-11-05"})
    told.sent(4)
    assert told.lost("transport", "closed") == ["close 2"]
    assert told.core.session.reason == Reason("transport", "closed")
    assert told.after(1.0) == ["open 3 by two endpoints"]


@pytest.mark.parametrize("status", [403, 500])
def test_other_refusals_do_not_lead_there(status: int) -> None:
    told = Told("http").until_probed()
    told.failed(1, NOT_FOUND)
    assert told.failed(2, Reason("http", status)) == ["close 1"]


def test_a_pipe_has_no_second_endpoint() -> None:
    told = Told().until_probed()
    told.error(1, -32601)
    assert told.failed(2, Reason("http", 405)) == ["close 1"]


def test_a_server_of_two_endpoints_that_is_gone_may_be_another_one() -> None:
    """A verdict is dropped when it stops fitting; the next attempt finds out anew."""
    told = Told("http", verdicts=knowing(TWO))
    assert told.start() == ["open 1 by two endpoints"]
    assert told.lost("http", 405) == ["close 1"]
    assert verdict_of(told) is None
    assert told.after(1.0) == ["open 2"]


# -- verdicts -------------------------------------------------------------------------------------


def test_a_known_handshake_server_is_not_probed() -> None:
    """client-behaviour check 12."""
    told = Told(verdicts=knowing(HANDSHAKE))
    told.start()
    assert told.opened() == ["send 1 initialize"]


@promise("ready.at_once")
def test_a_known_stateless_server_is_ready_without_a_word() -> None:
    """client-behaviour check 12; client-2.8.0 §await_ready."""
    told = Told("http", verdicts=knowing(STATELESS))
    told.start()
    assert told.opened() == ["agreed stateless 2026-07-28", "begin stateless 2026-07-28"]
    assert told.core.ledger.facts is not None
    assert told.core.ledger.facts.capabilities == {"tools": {}}


def test_a_verdict_that_is_too_old_is_none() -> None:
    """client-behaviour check 13."""
    told = Told(verdicts=knowing(HANDSHAKE), era_ttl=0.0)
    told.start()
    assert told.opened() == ["send 1 server/discover"]


def test_a_verdict_is_not_made_younger_by_being_used() -> None:
    """Or a server that learns the new era would be greeted in the old way for ever."""
    told = Told(verdicts=knowing(HANDSHAKE, at=-700.0))
    told.start()
    told.opened()
    told.result(1, GREETED)
    told.sent(2)
    told.now += 100.0
    assert verdict_of(told) is None


def test_a_refused_initialize_drops_the_verdict() -> None:
    """ours: ADR-0023."""
    told = Told(verdicts=knowing(HANDSHAKE))
    told.start()
    told.opened()
    told.error(1, -32600)
    assert verdict_of(told) is None
    told.after(1.0)
    assert told.opened() == ["send 2 server/discover"]


def test_a_verdict_waits_until_a_session_was_usable() -> None:
    """ours: ADR-0023: ill health never poisons it."""
    told = Told().until_probed()
    told.error(1, -32601)
    told.result(2, GREETED)
    assert verdict_of(told) is None


# -- a client that was told the era ---------------------------------------------------------------


@pytest.mark.parametrize("era", list(EraName))
def test_a_told_era_is_no_verdict(era: EraName) -> None:
    """The next client, which was not told, has to find out: nobody has asked the server yet."""
    told = Told(era=era)
    told.start()
    told.opened()
    if era is EraName.STATELESS:
        told.result(1, DISCOVERED)
    else:
        told.result(1, GREETED)
        told.sent(2)
    assert told.core.session.usable
    assert verdict_of(told) is None


def test_a_told_handshake_never_probes_whatever_is_known() -> None:
    told = Told(era=EraName.HANDSHAKE, verdicts=knowing(STATELESS))
    told.start()
    assert told.opened() == ["send 1 initialize"]


def test_a_told_stateless_era_probes_and_never_initializes() -> None:
    told = Told(era=EraName.STATELESS, verdicts=knowing(HANDSHAKE)).until_probed()
    assert told.after(59.0) == []
    assert told.error(1, -32601) == ["close 1"]
    assert told.core.session.reason == Reason("unsupported_version")


def test_a_told_stateless_era_says_what_it_met() -> None:
    told = Told("http", era=EraName.STATELESS).until_probed()
    told.failed(1, NOT_FOUND)
    assert told.core.session.reason is not None
    assert told.core.session.reason.path == ("unsupported_version", "http", 404)


def test_a_told_stateless_server_that_exits_is_not_initialized() -> None:
    told = Told(era=EraName.STATELESS).until_probed()
    assert told.lost("server_exited", 0) == ["close 1"]

"""Sealing: the question is the result, and the client brings the answer back once."""

from __future__ import annotations

from itertools import count

import pytest

from raxol_mcp.core.calls import Call, Via
from raxol_mcp.core.eras import StatelessEra
from raxol_mcp.core.methods import STATELESS_METHODS
from raxol_mcp.core.peers import Capability, ConnectionFacts, Peer
from raxol_mcp.core.questions import Question, approval
from raxol_mcp.core.seal import Claims, Seal
from raxol_mcp.core.sealing import Sealing, binding_of
from raxol_mcp.wire.jsonrpc import JSONObject
from tests.core.support import IDENTITY, KEY

WALL = 1_000_000.0
ERA = StatelessEra(IDENTITY)
APPROVAL = approval("Delete it?", "delete")
FORM: JSONObject = {"message": "Why?", "requestedSchema": {"type": "object", "properties": {}}}
CONSENT = Question("reason", "elicitation/create", FORM, Capability.FORM, consent=True)
ROUND = Question("roots", "roots/list", {}, Capability.ROOTS)
YES = {"action": "accept", "content": {"approve": True}}


def sealing(*, ttl: float = 600.0, key: bytes = KEY) -> Sealing:
    """A sealing whose nonces count up."""
    numbers = count(1)
    return Sealing(Seal(key), new_id=lambda: f"n{next(numbers)}", ttl=ttl, wall_offset=WALL)


def call_of(
    *,
    method: str = "tools/call",
    principal: str | None = "alice",
    share: str | None = "alice",
    connection: str = "post-1",
    **params: object,
) -> Call:
    """A call that came with these params, from one of many connections of a principal."""
    peer = Peer(connection, ConnectionFacts("http", principal, share))
    call = Call(peer, 1, STATELESS_METHODS[method], ERA, Via.PUSH, None)
    defaults: JSONObject = (
        {"uri": "file:///a"}
        if method == "resources/read"
        else {"name": "delete", "arguments": {"path": "a"}}
    )
    call.read({**defaults, **params}, None)
    return call


def minted(
    sealed: Sealing,
    *questions: Question,
    call: Call | None = None,
    round: int = 0,
    state: str | None = None,
    now: float = 0.0,
) -> JSONObject:
    """Mint the result that asks these questions."""
    result = sealed.mint(call or call_of(), questions, round=round, state=state, now=now)
    assert result is not None
    return result


def retry(token: object, answers: object = None, **changes: object) -> Call:
    """The same call again on a connection of its own, with a token and answers."""
    whole = {"connection": "post-2", "requestState": token, **changes}
    return call_of(**whole, inputResponses=answers)  # type: ignore[arg-type]  # see call_of


def test_the_result_carries_the_questions_and_the_state() -> None:
    """MCP 2026-07-28 basic/patterns/mrtr: InputRequiredResult, values without jsonrpc and id."""
    result = minted(sealing(), APPROVAL, CONSENT)
    token = result.pop("requestState")
    assert isinstance(token, str)
    assert result == {
        "resultType": "input_required",
        "inputRequests": {
            "approve": {"method": "elicitation/create", "params": APPROVAL.params},
            "reason": {"method": "elicitation/create", "params": FORM},
        },
    }


def test_a_round_without_questions_has_state_alone() -> None:
    """MCP 2026-07-28 basic/patterns/mrtr: at least one of the two."""
    result = minted(sealing(), round=1, state="page 2")
    assert set(result) == {"resultType", "requestState"}


def test_a_state_that_is_too_long_is_not_minted() -> None:
    call = call_of()
    assert sealing().mint(call, (ROUND,), round=1, state="x" * 5000, now=0.0) is None


def test_what_was_minted_opens_for_the_same_request_later_and_elsewhere() -> None:
    sealed = sealing()
    token = minted(sealed, APPROVAL, CONSENT, ROUND, round=3, state="s", now=10.0)["requestState"]
    claims = sealed.open(retry(token), 20.0)
    assert isinstance(claims, Claims)
    assert claims.keys == ("approve!", "reason?", "roots.")
    assert (claims.nonce, claims.round, claims.state) == ("n1", 3, "s")
    assert (claims.issued_at, claims.expires_at) == (WALL + 10.0, WALL + 610.0)


def test_another_process_with_the_same_key_opens_it() -> None:
    """ADR-0008. Instants are wall clock, because their clocks have epochs of their own."""
    token = minted(sealing(), APPROVAL)["requestState"]
    assert isinstance(sealing().open(retry(token), 0.0), Claims)
    assert sealing(key=b"x" * 32).open(retry(token), 0.0) == "wrong tag"


def test_a_token_has_its_time() -> None:
    sealed = sealing(ttl=60.0)
    token = minted(sealed, APPROVAL)["requestState"]
    assert isinstance(sealed.open(retry(token), 59.9), Claims)
    assert sealed.open(retry(token), 60.0) == "expired"


@pytest.mark.parametrize(
    "change",
    [
        {"name": "format"},
        {"arguments": {"path": "b"}},
        {"arguments": {"path": "a", "force": True}},
        {"arguments": {"path": ["a"]}},
        {"arguments": {}},
        {"principal": "bob"},
        {"principal": None},
        {"share": "bob"},
        {"method": "prompts/get"},
        {"method": "resources/read"},
    ],
    ids=str,
)
def test_a_token_is_good_for_nothing_else(change: dict[str, object]) -> None:
    """MCP 2026-07-28 basic/patterns/mrtr §Server: bound to method, params and principal."""
    sealed = sealing()
    token = minted(sealed, APPROVAL)["requestState"]
    assert sealed.open(retry(token, **change), 1.0) == "bound to another request"


@pytest.mark.parametrize("name", [None, "x", "file:///a"])
def test_a_token_for_one_resource_is_not_good_for_another(name: str | None) -> None:
    """Whatever else the client writes beside the uri."""
    sealed = sealing()
    extra = {} if name is None else {"name": name}
    first = call_of(method="resources/read", uri="file:///a", **extra)
    token = minted(sealed, ROUND, call=first)["requestState"]
    other = call_of(method="resources/read", uri="file:///b", requestState=token, **extra)
    assert sealed.open(other, 1.0) == "bound to another request"


@pytest.mark.parametrize("token", [1, True, ["x"], {"a": 1}, 1.5])
def test_a_token_is_a_string(token: object) -> None:
    assert sealing().open(retry(token), 0.0) == "not a string"


def test_the_binding_does_not_depend_on_the_connection_or_the_order_of_arguments() -> None:
    """MCP 2026-07-28 basic: a retry may come over another connection."""
    one = call_of(connection="post-1", arguments={"a": 1, "b": 2})
    other = call_of(connection="post-2", arguments={"b": 2, "a": 1})
    assert binding_of(one) == binding_of(other)


# -- answers --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("questions", "given", "answers", "refusal"),
    [
        # The approval, and all that is not exactly a yes.
        ([APPROVAL], {"approve": YES}, {"approve": YES}, None),
        ([APPROVAL], {"approve": {"action": "decline"}}, None, "user decline"),
        ([APPROVAL], {"approve": {"action": "cancel"}}, None, "user cancel"),
        ([APPROVAL], {"approve": {"action": "accept"}}, None, "user accept"),
        ([APPROVAL], {"approve": True}, None, "user declined"),
        ([APPROVAL], {"approve": None}, None, "user declined"),
        # What is missing is asked again; what was not asked for is ignored.
        ([APPROVAL], {}, None, None),
        ([APPROVAL], None, None, None),
        ([APPROVAL], {"approve!": YES}, None, None),
        ([APPROVAL], {"other": YES}, None, None),
        ([APPROVAL], {"approve": YES, "other": YES}, {"approve": YES}, None),
        ([APPROVAL, CONSENT], {"approve": YES}, None, None),
        # A no counts although the rest is missing.
        ([APPROVAL, CONSENT], {"approve": {"action": "decline"}}, None, "user decline"),
        # A consent hands over its form.
        (
            [APPROVAL, CONSENT],
            {"approve": YES, "reason": {"action": "accept", "content": {"why": "old"}}},
            {"approve": YES, "reason": {"why": "old"}},
            None,
        ),
        ([CONSENT], {"reason": {"action": "cancel"}}, None, "user cancel"),
        # A tool's own round: the tool looks at whatever is there.
        ([ROUND], {"roots": {"roots": []}}, {"roots": {"roots": []}}, None),
        ([ROUND], {}, {}, None),
        ([ROUND], {"roots": {"action": "decline"}}, {"roots": {"action": "decline"}}, None),
        ([ROUND], {"roots": "none"}, None, "user declined"),
        ([], None, {}, None),
    ],
)
def test_how_answers_are_read(
    questions: list[Question],
    given: object,
    answers: dict[str, object] | None,
    refusal: str | None,
) -> None:
    """MCP 2026-07-28 basic/patterns/mrtr §Server 5, 6; the approval: Raxol MCP 2.8.0."""
    sealed = sealing()
    call = retry(minted(sealed, *questions)["requestState"], given)
    claims = sealed.open(call, 1.0)
    assert isinstance(claims, Claims)
    settled = sealed.settle(call, claims)
    assert (settled.answers, settled.refusal) == (answers, refusal)


def test_a_key_with_a_mark_at_its_end_stays_apart() -> None:
    """A tool chooses its keys: one that looks like a marked one is still its own."""
    sealed = sealing()
    odd = Question("approve!", "roots/list", {}, Capability.ROOTS)
    call = retry(minted(sealed, odd)["requestState"], {"approve!": {"roots": []}, "approve": 1})
    claims = sealed.open(call, 1.0)
    assert isinstance(claims, Claims)
    assert sealed.settle(call, claims).answers == {"approve!": {"roots": []}}


def test_a_token_is_spent_once_and_only_its_own_share_counts_it() -> None:
    sealed = sealing()
    token = minted(sealed, APPROVAL)["requestState"]
    call = retry(token, {"approve": YES})
    claims = sealed.open(call, 1.0)
    assert isinstance(claims, Claims)
    assert (len(sealed), sealed.spend(call, claims, 1.0), len(sealed)) == (0, True, 1)
    assert not sealed.spend(retry(token, {"approve": YES}), claims, 2.0)
    assert isinstance(sealed.open(call, 2.0), Claims), "only spending remembers"

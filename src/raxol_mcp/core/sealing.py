"""Asking in the stateless era: the question is the result, and the client brings the answer back.

Nothing is parked. What must survive until the retry travels through the client, sealed; what must
not happen twice is remembered here, bounded, as spent nonces.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from raxol_mcp.core.peers import Capability
from raxol_mcp.core.questions import Question
from raxol_mcp.core.seal import Claims, Seal, SpentNonces, digest
from raxol_mcp.wire.jsonrpc import JSONObject

if TYPE_CHECKING:
    from raxol_mcp.core.calls import Call

__all__ = ["Sealing", "Settled"]


class Settled:
    """How the answers of a retry read: exactly one of the three is set.

    `refusal`: the human said no (the detail of the deny). `answers`: everything is there, by key.
    Neither: an answer is missing, so the question must be put again.
    """

    __slots__ = ("answers", "refusal")

    def __init__(
        self, *, answers: dict[str, object] | None = None, refusal: str | None = None
    ) -> None:
        self.answers = answers
        self.refusal = refusal


class Sealing:
    """Mints and redeems `requestState`.

    `ttl` is seconds; `wall_offset` turns `now` into wall-clock seconds.
    """

    __slots__ = ("_new_id", "_seal", "_spent", "_ttl", "_wall_offset")

    def __init__(
        self, seal: Seal, *, new_id: Callable[[], str], ttl: float, wall_offset: float
    ) -> None:
        self._seal = seal
        self._new_id = new_id
        self._ttl = ttl
        self._wall_offset = wall_offset
        self._spent = SpentNonces()

    def __len__(self) -> int:
        return len(self._spent)

    def mint(
        self,
        call: Call,
        questions: tuple[Question, ...],
        *,
        round: int,
        state: str | None,
        now: float,
    ) -> JSONObject | None:
        """Write the `input_required` result, or None when `state` is too long to carry."""
        wall_now = now + self._wall_offset
        keys = tuple(
            f"{question.key}!"
            if question.approval
            else f"{question.key}?"
            if question.consent
            else f"{question.key}."
            for question in questions
        )
        token = self._seal.seal(
            Claims(
                binding_of(call),
                keys,
                self._new_id(),
                wall_now,
                wall_now + self._ttl,
                round,
                state,
                call.subject,
            )
        )
        if token is None:
            return None
        result: JSONObject = {"resultType": "input_required"}
        if questions:
            result["inputRequests"] = {
                question.key: {"method": question.method, "params": _params_of(question)}
                for question in questions
            }
        result["requestState"] = token
        return result

    def open(self, call: Call, now: float) -> Claims | str:
        """Check the `requestState` of a retry: its claims, or (for the log) why it is not valid."""
        token = call.params["requestState"]
        if not isinstance(token, str):
            return "not a string"
        return self._seal.open(token, binding=binding_of(call), wall_now=now + self._wall_offset)

    def settle(self, call: Call, claims: Claims) -> Settled:
        """Read the answers that came with a valid token. Unknown keys are ignored."""
        given = call.params.get("inputResponses")
        responses = given if isinstance(given, dict) else {}
        answers: dict[str, object] = {}
        for marked in claims.keys:
            key, kind = marked[:-1], marked[-1]
            if key not in responses:
                if kind == ".":
                    continue  # a tool's own round: the tool looks at what is there
                return Settled()
            question = Question(
                key, "", {}, Capability.NONE, approval=kind == "!", consent=kind == "?"
            )
            refusal = question.refusal_of(responses[key])
            if refusal is not None:
                return Settled(refusal=refusal)
            answers[key] = question.kept(responses[key])
        return Settled(answers=answers)

    def spend(self, call: Call, claims: Claims, now: float) -> bool:
        """Use the token once; False when that is not possible (any more)."""
        return self._spent.spend(call.share, claims, now + self._wall_offset)


def _params_of(question: Question) -> JSONObject:
    # A page has no id in this era (MCP 2026-07-28 client/elicitation §URL Mode).
    return {name: value for name, value in question.params.items() if name != "elicitationId"}


def binding_of(call: Call) -> str:
    """Digest what an approval is about: who asks for which method, name and arguments."""
    principal, share = call.facts.principal, repr(call.share)
    return digest([call.method.name, call.name, call.arguments, principal, share])

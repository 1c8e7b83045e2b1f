"""A tool's own questions: returned instead of a result, answered before it is run again.

Works in both eras: parked in the handshake era, `input_required` in the stateless one. No side
effect is repeated unless the tool repeats it: do everything that changes something after the last
round.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from raxol_mcp.core.outcomes import Asked
from raxol_mcp.core.peers import Capability
from raxol_mcp.core.questions import Question
from raxol_mcp.wire.jsonrpc import JSONObject, UnencodableResult, encode_result

__all__ = ["Elicit", "ElicitUrl", "InputRequired", "ListRoots", "Sample"]

_MAX_REQUESTS: Final = 16


class Elicit(msgspec.Struct, frozen=True):
    """Ask the human to fill in a form. `requested_schema` is a flat object of primitives.

    The answer is the `ElicitResult` object: `{"action": "accept", "content": {...}}`, or another
    action; it is the tool's to check.
    """

    message: str
    requested_schema: JSONObject

    def question(self, key: str) -> Question:
        """Write it as a question."""
        params: JSONObject = {"message": self.message, "requestedSchema": self.requested_schema}
        return Question(key, "elicitation/create", params, Capability.FORM)


class ElicitUrl(msgspec.Struct, frozen=True):
    """Send the human to a web page (2025-11-25 and later). `accept` means they agreed to go.

    `elicitation_id` names it in the handshake era; the stateless era has no such field.
    """

    message: str
    url: str
    elicitation_id: str

    def question(self, key: str) -> Question:
        """Write it as a question."""
        params: JSONObject = {
            "mode": "url",
            "message": self.message,
            "url": self.url,
            "elicitationId": self.elicitation_id,
        }
        return Question(key, "elicitation/create", params, Capability.URL)


class Sample(msgspec.Struct, frozen=True):
    """Let the client's model complete something. `params` are those of `sampling/createMessage`.

    The answer is the `CreateMessageResult` object.
    """

    params: JSONObject

    def question(self, key: str) -> Question:
        """Write it as a question."""
        needs = Capability.SAMPLING
        if "tools" in self.params or "toolChoice" in self.params:
            needs |= Capability.SAMPLING_TOOLS
        if self.params.get("includeContext", "none") != "none":
            needs |= Capability.SAMPLING_CONTEXT
        return Question(key, "sampling/createMessage", self.params, needs)


class ListRoots(msgspec.Struct, frozen=True):
    """Ask the client for its roots. The answer is `{"roots": [...]}`."""

    def question(self, key: str) -> Question:
        """Write it as a question."""
        return Question(key, "roots/list", {}, Capability.ROOTS)


_REQUESTS: Final = (Elicit, ElicitUrl, Sample, ListRoots)


class InputRequired(msgspec.Struct, frozen=True):
    """Return this from a tool, resource or prompt to be run again with answers.

    `requests` maps a key of your own to what to ask; the answers are in `Context.answers` under
    the same keys. `state` (text, about 2 KiB at most) comes back unchanged in `Context.state`.
    The client carries it: signed, so it cannot be changed, but it can be read. At most 10 rounds.
    """

    requests: Mapping[str, Elicit | ElicitUrl | Sample | ListRoots]
    state: str | None = None

    def asked(self, subject: str | None, *, max_bytes: int) -> Asked:
        """Write it as what a worker reports. Raises ValueError for what cannot be asked.

        A question that cannot be sent would leave everybody waiting for its answer.
        """
        requests: object = self.requests
        if not isinstance(requests, Mapping) or not 1 <= len(requests) <= _MAX_REQUESTS:
            raise ValueError(f"InputRequired takes 1 to {_MAX_REQUESTS} requests")
        for key, request in requests.items():
            if not isinstance(key, str) or not isinstance(request, _REQUESTS):
                raise ValueError("InputRequired takes a dict of requests by keys of text")
        if not isinstance(self.state, str | None):
            raise ValueError("the state of an InputRequired is text")
        questions = tuple(request.question(key) for key, request in self.requests.items())
        sent = {question.key: question.params for question in questions}
        try:
            encode_result({"requests": sent, "state": self.state}, max_bytes=max_bytes)
        except UnencodableResult as error:
            raise ValueError(f"the InputRequired cannot be sent: {error}") from error
        return Asked(questions, subject, round=True, state=self.state)

"""Questions to the human behind a client, and how an answer to one is read.

Silence is not consent, and neither is anything else that is not exactly a yes: an answer that
does not have the right shape counts as a no.
"""

from __future__ import annotations

from typing import Final

from raxol_mcp.core.peers import Capability
from raxol_mcp.wire.jsonrpc import JSONObject
from raxol_mcp.wire.values import Value

__all__ = ["APPROVAL_KEY", "Question", "approval", "left_of"]

APPROVAL_KEY: Final = "approve"
_ACTIONS: Final = frozenset({"accept", "decline", "cancel"})


class Question(Value):
    """One request to the client.

    `key` names it among the questions of one call; `method` and `params` are the request on the
    wire; `needs` is what the client must have declared. An `approval` wants a yes; a `consent`
    wants an accepted form; neither (a tool's own round): any answer is handed to the tool.
    """

    key: str
    method: str
    params: JSONObject
    needs: Capability
    approval: bool = False
    consent: bool = False

    def asked(self) -> Question:
        """Give what is kept once the request is on the wire: how to read the answer."""
        if self.approval:
            return _APPROVAL
        return Question(self.key, self.method, {}, self.needs, consent=self.consent)

    def refusal_of(self, answer: object) -> str | None:
        """Read `answer` (any JSON value): None when the call may go on, else the deny's detail.

        An approval needs `action` "accept" and `content.approve` exactly true: `1` and `"true"`
        are not a yes, and `1 == True` in Python, hence identity. A tool's own round takes any
        object: what it means is for the tool to say.
        """
        if not isinstance(answer, dict):
            return "user declined"
        if not (self.approval or self.consent):
            return None
        action = answer.get("action")
        # The client chose these words: only the three it may use are repeated to anybody.
        if not isinstance(action, str) or action not in _ACTIONS:
            return "user declined"
        if action != "accept":
            return f"user {action}"
        content = answer.get("content")
        if not self.approval or (isinstance(content, dict) and content.get("approve") is True):
            return None
        return "user accept"

    def kept(self, answer: object) -> object:
        """Give the part of an accepted answer that the tool is handed."""
        if self.consent and isinstance(answer, dict):
            return answer.get("content")
        return answer


def left_of(questions: tuple[Question, ...]) -> tuple[Question, ...]:
    """Give what a parked call keeps of its questions once the first is on the wire."""
    if len(questions) == 1 and questions[0].approval:
        return _APPROVAL_ALONE  # what parked calls have nearly always: one for all of them
    return (questions[0].asked(), *questions[1:])


def approval(prompt: str, tool: str) -> Question:
    """Build the question that an authorizer's ask puts to the human."""
    return Question(
        APPROVAL_KEY,
        "elicitation/create",
        {
            "message": prompt,
            "requestedSchema": {
                "type": "object",
                "properties": {
                    "approve": {
                        "type": "boolean",
                        "description": f"Approve running the {tool} tool",
                    }
                },
                "required": ["approve"],
            },
        },
        Capability.FORM,
        approval=True,
    )


_APPROVAL: Final = Question(APPROVAL_KEY, "elicitation/create", {}, Capability.FORM, approval=True)
_APPROVAL_ALONE: Final = (_APPROVAL,)

"""A registered tool, made ready to be called: how its arguments are checked and its code is run.

Made at the first call, not at registration: ten thousand tools must start fast.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Final

from raxol_mcp.core.peers import Capability
from raxol_mcp.core.questions import Question, approval
from raxol_mcp.errors import ConfigurationError
from raxol_mcp.server.arguments import ArgumentsInvalid
from raxol_mcp.server.callbacks import is_async
from raxol_mcp.server.content import tool_payload
from raxol_mcp.server.functions import Function
from raxol_mcp.wire.jsonrpc import JSONObject

if TYPE_CHECKING:
    from raxol_mcp.schemas.json_schema import Validator
    from raxol_mcp.server.asking import AskParameter
    from raxol_mcp.server.context import Context
    from raxol_mcp.server.definitions import Tool
    from raxol_mcp.server.returns import Returns
    from raxol_mcp.wire.headers import Mirror

__all__ = ["PreparedTool"]

_ANNOTATION: Final = b"x-mcp-header"


class PreparedTool:
    """One tool, ready. Raises ConfigurationError when its raw schemas cannot be used.

    `key` is that of its circuit breaker, `asks` are its Ask parameters, `target` the function's
    name when it runs in a process, `in_thread` whether it blocks, `mirrors` the arguments that a
    client repeats in headers.
    """

    __slots__ = (
        "_approval",
        "_callback",
        "_encoded",
        "_function",
        "_input",
        "_name",
        "_returns",
        "_subject",
        "asks",
        "bind",
        "in_thread",
        "key",
        "mirrors",
        "target",
    )

    def __init__(self, tool: Tool) -> None:
        function = tool.function
        self._function = function if isinstance(function, Function) else None
        self._callback = tool.callback
        self._approval = tool.approval
        self._name = tool.name
        self._encoded = tool.encoded
        self._subject: str | None = None
        self.key = (tool.kind.value, tool.name)
        self._input: Validator | None = None
        self._returns: Returns | None
        # Checks arguments strictly; raises ArgumentsInvalid naming every bad one.
        self.bind: Callable[[Mapping[str, object]], dict[str, object]] = self._checked
        if self._function is not None:
            self.bind = self._function.bind  # itself, so that a call passes through one frame less
            self._returns = self._function.output
        else:
            from raxol_mcp.schemas.json_schema import compile_schema
            from raxol_mcp.server.returns import returns_from_schema

            self._input = compile_schema(tool.input_schema)
            output = tool.output_schema
            self._returns = None if output is None else returns_from_schema(output)
        self.mirrors: tuple[Mirror, ...] = ()
        if _ANNOTATION in bytes(self._encoded):
            from raxol_mcp.wire.headers import mirrors_of  # for the few tools that have any

            self.mirrors = mirrors_of(tool.input_schema)
        self.asks = () if self._function is None else self._function.asks
        asynchronous = is_async(tool.callback)
        self.in_thread = tool.isolation == "thread" or (
            tool.isolation == "auto" and not asynchronous
        )
        self.target: str | None = None
        if tool.isolation == "process":
            from raxol_mcp.server.process_call import target_of

            self.target = target_of(tool.callback)
            if self._function is None or self.asks or self._function.context is not None:
                raise ConfigurationError(
                    f"tool {tool.name!r} runs in a process: it takes plain arguments only, "
                    "no Context and no Ask parameter"
                )

    @property
    def subject(self) -> str:
        """Name what a human is asked about: a tool that was replaced meanwhile has another name.

        A digest of the definition as clients see it, so that it can travel in a `requestState`.
        """
        subject = self._subject
        if subject is None:  # made once: every parked call keeps it
            import hashlib  # only where somebody is asked

            digest = hashlib.sha256(bytes(self._encoded)).hexdigest()
            subject = self._subject = digest[:32]
        return subject

    def _checked(self, arguments: Mapping[str, object]) -> dict[str, object]:
        assert self._input is not None, "a tool without a signature has a schema"
        problem = self._input.problems(arguments)
        if problem is not None:
            raise ArgumentsInvalid(problem)
        return dict(arguments)

    def questions(
        self, arguments: Mapping[str, object], prompt: str | None
    ) -> tuple[Question, ...]:
        """Write what the human must answer: the authorizer's `prompt`, then the tool's own.

        A tool that is approved every time has a prompt where the authorizer has none.
        """
        if prompt is None and self._approval is not None:
            prompt = self._approval(arguments)
        asked = () if prompt is None else (approval(prompt, self._name),)
        if not self.asks:
            return asked
        return (*asked, *(self._consent(ask, arguments) for ask in self.asks))

    @staticmethod
    def _consent(ask: AskParameter, arguments: Mapping[str, object]) -> Question:
        return Question(
            ask.name,
            "elicitation/create",
            {"message": ask.message(arguments), "requestedSchema": ask.requested_schema},
            Capability.FORM,
            consent=True,
        )

    def answered(self, answers: Mapping[str, object]) -> dict[str, object]:
        """Check the human's answers strictly; raises ArgumentsInvalid."""
        return {ask.name: ask.convert(answers.get(ask.name)) for ask in self.asks}

    def work(
        self, arguments: dict[str, object], context: Callable[[], Context]
    ) -> Callable[[], object]:
        """Give the call of the code, to be made. What that returns may have to be awaited.

        `context` makes the context of this call, for code that takes one.
        """
        function = self._function
        if function is None:
            return partial(self._callback, arguments, context())
        if function.context is not None:
            arguments = {**arguments, function.context: context()}
        return partial(self._callback, **arguments)

    def payload(self, value: object) -> JSONObject:
        """Write what the code returned as the result. Raises ValueError or TypeError."""
        return tool_payload(value, self._returns)

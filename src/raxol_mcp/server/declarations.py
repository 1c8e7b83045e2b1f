"""The decorators: how people put tools, resources, prompts and completions on a server."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, TypeVar, overload

from raxol_mcp.server.declare import completion_of, prompt_of, resource_of, tool_of

if TYPE_CHECKING:
    from raxol_mcp.server.definitions import Fault, Isolation
    from raxol_mcp.server.registry import Registry
    from raxol_mcp.wire.jsonrpc import JSONObject

__all__ = ["Declarations"]

F = TypeVar("F", bound=Callable[..., object])


class Declarations:
    """Decorators over a registry. Each returns the function unchanged: it stays callable.

    All raise ConfigurationError, with one sentence that says what to change, for a function that
    cannot be served.
    """

    def __init__(self, registry: Registry) -> None:
        self.registry = registry

    @overload
    def tool(self, function: F, /) -> F: ...

    @overload
    def tool(
        self,
        /,
        *,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        annotations: Mapping[str, object] | None = None,
        sensitive: bool = False,
        destructive: bool | None = None,
        read_only: bool | None = None,
        isolation: Isolation = "auto",
        timeout: float | None = None,
        fault: Fault | None = None,
        icons: list[JSONObject] | None = None,
        meta: JSONObject | None = None,
    ) -> Callable[[F], F]: ...

    def tool(  # the options of a tool
        self,
        function: F | None = None,
        /,
        *,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        annotations: Mapping[str, object] | None = None,
        sensitive: bool = False,
        destructive: bool | None = None,
        read_only: bool | None = None,
        isolation: Isolation = "auto",
        timeout: float | None = None,
        fault: Fault | None = None,
        icons: list[JSONObject] | None = None,
        meta: JSONObject | None = None,
    ) -> F | Callable[[F], F]:
        """Serve a function as a tool: `@server.tool` or `@server.tool(destructive=True)`.

        Type hints are the input schema; arguments are checked strictly, nothing is coerced and
        unknown ones are refused. The docstring is the description. A `Context` parameter gets the
        call's context; an `Annotated[T, Ask("...")]` parameter is answered by the human.

        `destructive=True` or `sensitive=True`: not served without an authorizer. `isolation`: an
        `async def` runs as a task, a plain function in a thread, "process" in a process that can
        be killed. `timeout` is in seconds. `fault(error)` returning False: a failure that the
        circuit breaker does not count.
        """

        def declare(function: F) -> F:
            self.registry.register(
                tool_of(
                    function,
                    name=name,
                    title=title,
                    description=description,
                    annotations=annotations,
                    sensitive=sensitive,
                    destructive=destructive,
                    read_only=read_only,
                    isolation=isolation,
                    timeout=timeout,
                    fault=fault,
                    icons=icons,
                    meta=meta,
                )
            )
            return function

        return declare if function is None else declare(function)

    def resource(
        self,
        uri: str,
        *,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        mime_type: str | None = None,
        annotations: JSONObject | None = None,
        isolation: Isolation = "auto",
        fault: Fault | None = None,
    ) -> Callable[[F], F]:
        """Serve what a function returns under `uri`, or under every URI of a template.

        `@server.resource("notes://{name}")` passes the variable `name`; `{+path}` may hold
        slashes. Text, bytes, or anything that JSON can carry.
        """

        def declare(function: F) -> F:
            self.registry.register(
                resource_of(
                    uri,
                    function,
                    name=name,
                    title=title,
                    description=description,
                    mime_type=mime_type,
                    annotations=annotations,
                    isolation=isolation,
                    fault=fault,
                )
            )
            return function

        return declare

    @overload
    def prompt(self, function: F, /) -> F: ...

    @overload
    def prompt(
        self,
        /,
        *,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        isolation: Isolation = "auto",
        fault: Fault | None = None,
    ) -> Callable[[F], F]: ...

    def prompt(
        self,
        function: F | None = None,
        /,
        *,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        isolation: Isolation = "auto",
        fault: Fault | None = None,
    ) -> F | Callable[[F], F]:
        """Serve a function as a prompt: `@server.prompt`. Its parameters must be strings."""

        def declare(function: F) -> F:
            self.registry.register(
                prompt_of(
                    function,
                    name=name,
                    title=title,
                    description=description,
                    isolation=isolation,
                    fault=fault,
                )
            )
            return function

        return declare if function is None else declare(function)

    def completion(self, target: str, argument: str) -> Callable[[F], F]:
        """Suggest values for an argument of a prompt, or a variable of a resource template.

        `@server.completion("greet", "who")` over `(value)` or `(value, filled_in)`; at most 100
        of the returned strings are sent. A `target` with a scheme is a template.
        """

        def declare(function: F) -> F:
            self.registry.register(
                completion_of(
                    "ref/resource" if "://" in target else "ref/prompt",
                    target,
                    argument,
                    function,
                )
            )
            return function

        return declare

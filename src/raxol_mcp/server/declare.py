"""From a user's function to a definition: what the decorators of `Server` do.

Everything a definition lacks that the function can tell is taken from it: its name, the first
paragraph of its docstring, its parameters, its return type.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import msgspec

from raxol_mcp.errors import ConfigurationError
from raxol_mcp.server.callbacks import is_async
from raxol_mcp.server.context import Context
from raxol_mcp.server.definitions import (
    Completion,
    Fault,
    Isolation,
    Prompt,
    PromptArgument,
    Resource,
    ResourceTemplate,
    Tool,
)
from raxol_mcp.server.functions import Function, inspect_function
from raxol_mcp.wire.jsonrpc import JSONObject

if TYPE_CHECKING:
    from raxol_mcp.server.definitions import Reference

__all__ = ["completion_of", "prompt_of", "resource_of", "tool_of"]

AnyFunction = Callable[..., object]


def tool_of(
    function: AnyFunction,
    *,
    name: str | None,
    title: str | None,
    description: str | None,
    annotations: Mapping[str, object] | None,
    sensitive: bool,
    destructive: bool | None,
    read_only: bool | None,
    isolation: Isolation,
    timeout: float | None,
    fault: Fault | None,
    icons: list[JSONObject] | None,
    meta: JSONObject | None,
) -> Tool:
    """Make a tool of a function."""
    signature = inspect_function(function, context_type=Context)
    hints: JSONObject = dict(annotations or {})
    for hint, value in (("destructiveHint", destructive), ("readOnlyHint", read_only)):
        if value is not None:
            hints[hint] = value
    if sensitive:
        hints["sensitive"] = True
    tool = Tool(
        name=name or function.__name__,
        description=description or signature.description or _no_description(function, "tool"),
        input_schema=signature.input_schema,
        callback=function,
        title=title,
        annotations=hints or None,
        output_schema=None if signature.output is None else signature.output.schema,
        icons=icons,
        meta=meta,
        isolation=isolation,
        timeout=timeout,
        fault=fault,
        function=signature,
    )
    if isolation == "process":
        from raxol_mcp.server.prepared import PreparedTool

        PreparedTool(tool)  # a tool that cannot run in a process is a mistake to report now
    return tool


def resource_of(
    uri: str,
    function: AnyFunction,
    *,
    name: str | None,
    title: str | None,
    description: str | None,
    mime_type: str | None,
    annotations: JSONObject | None,
    isolation: Isolation,
    fault: Fault | None,
) -> Resource | ResourceTemplate:
    """Make a resource of a function, or a template when `uri` has variables."""
    signature = inspect_function(function, context_type=Context)
    taken = [field.name for field in signature.fields]
    if "{" not in uri:
        if taken:
            raise ConfigurationError(
                f"resource {uri!r}: {function.__name__} takes {', '.join(taken)}, but the URI has "
                "no such variable; write it as {name} in the URI"
            )
        return Resource(
            uri=uri,
            name=name or function.__name__,
            callback=_with_context(function, signature),
            title=title,
            description=description or signature.description or None,
            mime_type=mime_type,
            annotations=annotations,
            isolation=isolation,
            fault=fault,
        )
    from raxol_mcp.server.templates import Template  # few servers have one

    variables = Template(uri).variables
    if sorted(variables) != sorted(taken) or any(f.type is not str for f in signature.fields):
        raise ConfigurationError(
            f"resource {uri!r}: {function.__name__} must take exactly the variables of the URI "
            f"({', '.join(variables)}), each annotated str"
        )
    return ResourceTemplate(
        uri_template=uri,
        name=name or function.__name__,
        callback=_with_arguments(function, signature),
        title=title,
        description=description or signature.description or None,
        mime_type=mime_type,
        annotations=annotations,
        isolation=isolation,
        fault=fault,
    )


def prompt_of(
    function: AnyFunction,
    *,
    name: str | None,
    title: str | None,
    description: str | None,
    isolation: Isolation,
    fault: Fault | None,
) -> Prompt:
    """Make a prompt of a function. Its parameters are the arguments, and all are strings."""
    signature = inspect_function(function, context_type=Context)
    arguments = []
    for field in signature.fields:
        if field.schema.get("type") != "string":
            raise ConfigurationError(
                f"prompt {function.__name__!r}: argument {field.name!r} must be annotated str, "
                "because prompt arguments are strings"
            )
        required = field.default is msgspec.NODEFAULT
        arguments.append(PromptArgument(field.name, field.description, required))
    return Prompt(
        name=name or function.__name__,
        callback=_with_arguments(function, signature),
        title=title,
        description=description or signature.description or None,
        arguments=tuple(arguments),
        isolation=isolation,
        fault=fault,
    )


def completion_of(
    reference: Reference, target: str, argument: str, function: AnyFunction
) -> Completion:
    """Make a completion of a function `(value)` or `(value, filled_in)`."""
    code = getattr(function, "__code__", None)
    if code is not None and code.co_argcount == 1:
        return Completion(reference, target, argument, _of_value(function))
    return Completion(reference, target, argument, function)


def _of_value(function: AnyFunction) -> AnyFunction:
    if is_async(function):

        async def complete_later(value: str, filled_in: Mapping[str, str]) -> object:
            return await function(value)  # type: ignore[misc]  # it is a coroutine function

        return complete_later
    return lambda value, filled_in: function(value)


def _with_context(function: AnyFunction, signature: Function) -> AnyFunction:
    """Give `function` the form `(context)`, as sync or async as it is."""
    parameter = signature.context
    if is_async(function):

        async def read_later(context: Context) -> object:
            given = {} if parameter is None else {parameter: context}
            return await function(**given)  # type: ignore[misc]  # it is a coroutine function

        return read_later
    if parameter is None:
        return lambda context: function()
    return lambda context: function(**{parameter: context})


def _with_arguments(function: AnyFunction, signature: Function) -> AnyFunction:
    """Give `function` the form `(arguments, context)`, as sync or async as it is."""
    parameter = signature.context

    def given(arguments: Mapping[str, object], context: Context) -> dict[str, object]:
        bound = signature.bind(arguments)
        return bound if parameter is None else {**bound, parameter: context}

    if is_async(function):

        async def run_later(arguments: Mapping[str, object], context: Context) -> object:
            return await function(**given(arguments, context))  # type: ignore[misc]  # as above

        return run_later
    return lambda arguments, context: function(**given(arguments, context))


def _no_description(function: AnyFunction, kind: str) -> str:
    raise ConfigurationError(
        f"{kind} {function.__name__!r} has no description: write a docstring or pass description="
    )

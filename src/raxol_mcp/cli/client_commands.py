"""The commands that talk to a server: `tools`, `call`, `read`, `prompt` and `status`.

What they take, and the order of what they do. stdout gets the result and nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

import click

from raxol_mcp.cli.client_options import (
    ClientCommand,
    Manner,
    Target,
    manner_options,
    target_options,
)
from raxol_mcp.cli.exit_codes import NO_CONNECTION, OK, TOOL_FAILED
from raxol_mcp.cli.surroundings import Surroundings
from raxol_mcp.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from raxol_mcp.cli.client_output import Printer
    from raxol_mcp.cli.client_session import Session
    from raxol_mcp.cli.saving import Part
    from raxol_mcp.client.app import Client

__all__ = ["COMMANDS"]

# How many names an error tells.
_NAMED: Final = 20

_output = click.option(
    "--output",
    "-o",
    metavar="PATH",
    help="Write what is no text to this file, or into this folder; - is stdout.",
)


@click.command("tools", cls=ClientCommand)
@click.argument("name", required=False)
@target_options
@manner_options(asks=False)
@click.pass_obj
def _tools(
    surroundings: Surroundings | None, name: str | None, target: Target, manner: Manner
) -> int:
    """List the tools of a server; or tell all about the one called NAME."""

    async def work(session: Session) -> int:
        from raxol_mcp.cli.client_output import tool_json

        async with session.connected(target, "list its tools") as client:
            tools = await client.list_tools(timeout=manner.timeout)
            if name is None:
                listed = {"tools": [tool_json(tool) for tool in tools]}
                session.show(listed, lambda printer: printer.tools(tools))
                return OK
            found = next((tool for tool in tools if tool.name == name), None)
            if found is not None:
                session.show(tool_json(found), lambda printer: printer.tool(found))
                return OK
        known = ", ".join(tool.name for tool in tools[:_NAMED]) or "none"
        known = f"{known}, ..." if len(tools) > _NAMED else known
        raise ConfigurationError(f"the server lists no tool {name!r}; it has: {known}")

    return _run(surroundings, manner, work)


@click.command("call", cls=ClientCommand)
@click.argument("tool")
@click.argument("arguments", nargs=-1, metavar="[KEY=VALUE ...]")
@click.option(
    "--args",
    "source",
    metavar="JSON|@FILE|-",
    help="The arguments as one JSON object. Those on the command line are put into it.",
)
@_output
@target_options
@manner_options(asks=True)
@click.pass_obj
def _call(
    surroundings: Surroundings | None,
    tool: str,
    arguments: tuple[str, ...],
    source: str | None,
    output: str | None,
    target: Target,
    manner: Manner,
) -> int:
    """Call TOOL of a server.

    VALUE is taken as the type that the tool asks for: a text as it is, anything else as JSON.
    KEY:=VALUE is JSON whatever the tool says. What the server asks meanwhile is put to you; without
    a terminal it is declined.
    """
    from raxol_mcp.cli.given_arguments import json_arguments, pairs_of

    pairs = pairs_of(arguments)
    given = {} if source is None else json_arguments(source)

    async def work(session: Session) -> int:
        from raxol_mcp.cli.client_output import call_json
        from raxol_mcp.cli.saving import parts_of_result

        async with session.connected(target, f"call {tool}") as client:
            typed = await _typed(client, tool, pairs, manner)
            bar = session.progress_bar()
            result = await client.call_tool(
                tool,
                {**given, **typed},
                timeout=manner.timeout,
                progress=None if bar is None else bar.report,
            )
            _give(
                session,
                call_json(result),
                lambda printer, saved: printer.call(result, saved),
                parts=lambda: parts_of_result(result.content),
                output=output,
            )
        return TOOL_FAILED if result.is_error else OK

    return _run(surroundings, manner, work)


@click.command("read", cls=ClientCommand)
@click.argument("uri")
@_output
@target_options
@manner_options(asks=True)
@click.pass_obj
def _read(
    surroundings: Surroundings | None,
    uri: str,
    output: str | None,
    target: Target,
    manner: Manner,
) -> int:
    """Read the resource URI of a server."""

    async def work(session: Session) -> int:
        from raxol_mcp.cli.client_output import read_json
        from raxol_mcp.cli.saving import parts_of_contents

        async with session.connected(target, f"read {uri}") as client:
            result = await client.read_resource(uri, timeout=manner.timeout)
            _give(
                session,
                read_json(result),
                lambda printer, saved: printer.read(result, saved),
                parts=lambda: parts_of_contents(result.contents),
                output=output,
            )
        return OK

    return _run(surroundings, manner, work)


@click.command("prompt", cls=ClientCommand)
@click.argument("name")
@click.argument("arguments", nargs=-1, metavar="[KEY=VALUE ...]")
@target_options
@manner_options(asks=True)
@click.pass_obj
def _prompt(
    surroundings: Surroundings | None,
    name: str,
    arguments: tuple[str, ...],
    target: Target,
    manner: Manner,
) -> int:
    """Fill in the prompt NAME of a server."""
    from raxol_mcp.cli.given_arguments import pairs_of, text_arguments

    texts = text_arguments(pairs_of(arguments))

    async def work(session: Session) -> int:
        from raxol_mcp.cli.client_output import prompt_json

        async with session.connected(target, f"get the prompt {name}") as client:
            result = await client.get_prompt(name, texts, timeout=manner.timeout)
            session.show(prompt_json(result), lambda printer: printer.prompt(result))
        return OK

    return _run(surroundings, manner, work)


@click.command("status", cls=ClientCommand)
@target_options
@manner_options(asks=False)
@click.pass_obj
def _status(surroundings: Surroundings | None, target: Target, manner: Manner) -> int:
    """Connect to a server, or to every server of a file, and say how it went.

    The exit code is 4 when one cannot be used.
    """

    async def work(session: Session) -> int:
        from raxol_mcp.cli.client_output import status_json
        from raxol_mcp.client.group import ClientGroup

        entries = await session.targets.entries(target)
        group = ClientGroup(entries, client_factory=session.make_client)
        bound = {} if manner.timeout is None else {"timeout": manner.timeout}
        try:
            await group.start(**bound)
            await group.list_tools(**bound)
            statuses = list(group.status().values())
            told = {"servers": [status_json(status) for status in statuses]}
            session.show(told, lambda printer: printer.status(statuses))
        finally:
            await group.stop()
        wrong = [
            status
            for status in statuses
            if status.status != "ready"
            and (status.reason is None or status.reason.tag != "disabled")
        ]
        return NO_CONNECTION if wrong else OK

    return _run(surroundings, manner, work)


COMMANDS: Final = {command.name: command for command in (_tools, _call, _read, _prompt, _status)}
"""The commands by their names."""


def _run(
    surroundings: Surroundings | None,
    manner: Manner,
    work: Callable[[Session], Awaitable[int]],
) -> int:
    from raxol_mcp.cli.client_session import run_session

    return run_session(surroundings or Surroundings(), manner, work)


def _give(
    session: Session,
    document: object,
    text: Callable[[Printer, Mapping[int, str]], str],
    *,
    parts: Callable[[], Mapping[int, Part]],
    output: str | None,
) -> None:
    """Print a result, and write `parts` of it where `output` says.

    It is printed also where that fails: the tool has run, and may not be run again for it.
    """
    from raxol_mcp.cli.saving import STDOUT, save

    saved: Mapping[int, str] = {}
    try:
        if output is not None:
            saved = save(parts(), output)
    finally:
        if output != STDOUT or not saved:
            session.show(document, lambda printer: text(printer, saved))


async def _typed(
    client: Client, tool: str, pairs: Mapping[str, str], manner: Manner
) -> dict[str, object]:
    """Give the arguments of the command line the types that the tool asks for.

    A tool that is not listed may be there all the same: then its arguments are texts.
    """
    from raxol_mcp.cli.given_arguments import typed_arguments

    if not pairs:
        return {}
    tools = await client.list_tools(timeout=manner.timeout)
    schema = next((found.input_schema for found in tools if found.name == tool), None)
    return typed_arguments(pairs, schema)

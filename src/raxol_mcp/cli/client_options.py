"""The options of the commands that talk to a server: which one, and how to deal with it.

Which server is named in one of three ways: a command line to start, a URL, or an entry of an
`.mcp.json`. Everything here is text of a command line; nothing is started, read or looked up.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Final

import click

from raxol_mcp.wire.texts import printable
from raxol_mcp.wire.values import Value

__all__ = ["ClientCommand", "Manner", "Target", "manner_options", "target_options"]

_ARGV: Final = "raxol_mcp.argv"
_HERE: Final = "FILE is ./.mcp.json, or else your own; SERVER may be left out where it has one."


class ClientCommand(click.Command):
    """A command that may end in `-- PROGRAM ARGUMENT...`, the server to start."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Take the program off before click reads the rest: click would forget where it began."""
        if "--" in args:
            cut = args.index("--")
            ctx.meta[_ARGV] = tuple(args[cut + 1 :])
            args = args[:cut]
        return super().parse_args(ctx, args)

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        """Show the program in the usage line."""
        return [*super().collect_usage_pieces(ctx), "[-- PROGRAM ...]"]


class Target(Value, frozen=True, kw_only=True):
    """The server that a command line names.

    `argv` is what to start, `url` where it is; without both it is an entry of a file, `server` of
    `config`, either of which may be left out. Raises click.UsageError for options that contradict
    each other or mean nothing together.
    """

    argv: tuple[str, ...] | None = None
    url: str | None = None
    headers: tuple[str, ...] = ()
    header_variables: tuple[str, ...] = ()
    allow_private: bool = False
    era: str | None = None
    server: str | None = None
    config: str | None = None

    def __post_init__(self) -> None:
        ways = {
            "a command": self.argv is not None,
            "--url": self.url is not None,
            "--server or --config": self.server is not None or self.config is not None,
        }
        named = [way for way, is_named in ways.items() if is_named]
        if len(named) > 1:
            raise click.UsageError(f"{' and '.join(named)} exclude each other: name one server")
        if self.argv is not None and not (self.argv and self.argv[0]):
            raise click.UsageError("the command of the server is empty: name a program")
        if self.url is None and (self.headers or self.header_variables or self.allow_private):
            raise click.UsageError("--header, --header-env and --allow-private belong to --url")
        if self.era is not None and self.url is None and self.argv is None:
            raise click.UsageError("--era belongs to a command or --url; a file says it itself")

    def header_pairs(self, environ: Mapping[str, str]) -> list[tuple[str, str]]:
        """Give the headers, with those that come from variables. Raises click.UsageError."""
        pairs = []
        for text in self.headers:
            name, colon, value = text.partition(":")
            if not colon or not name.strip():
                raise click.UsageError('write a header as --header "NAME: VALUE"')
            pairs.append((name.strip(), value.strip()))
        for text in self.header_variables:
            name, equals, variable = text.partition("=")
            if not equals or not name.strip() or not variable:
                raise click.UsageError(
                    "write a header from a variable as --header-env NAME=VARIABLE"
                )
            if not environ.get(variable):
                raise click.UsageError(
                    f"--header-env names the variable {printable(variable)!r}, which is not set"
                )
            pairs.append((name.strip(), environ[variable]))
        return pairs


class Manner(Value, frozen=True, kw_only=True):
    """How to deal with a server: what is shown, how long it may take, what is agreed to."""

    as_json: bool = False
    timeout: float | None = None
    quiet: bool = False
    verbose: bool = False
    answers: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.quiet and self.verbose:
            raise click.UsageError("--quiet and --verbose exclude each other: name one")
        self.answered()

    def answered(self) -> dict[str, list[str]]:
        """Give the answers by the name of their field, in order. Raises click.UsageError."""
        given: dict[str, list[str]] = {}
        for text in self.answers:
            name, equals, value = text.partition("=")
            if not equals or not name:
                raise click.UsageError(f"write an answer as field=value, not {printable(text)!r}")
            given.setdefault(name, []).append(value)
        return given


def target_options(function: Callable[..., object]) -> Callable[..., object]:
    """Give a command the options; `function` is called with them as its argument `target`."""

    @wraps(function)
    def command(**given: object) -> object:
        command_line = given.pop("command_line")
        argv = click.get_current_context().meta.get(_ARGV)
        if isinstance(command_line, str):
            if argv is not None:
                raise click.UsageError("--command and -- exclude each other: name one server")
            argv = _split(command_line)
        named = {name: given.pop(name) for name in Target.__struct_fields__ if name != "argv"}
        return function(**given, target=Target(argv=argv, **named))  # type: ignore[arg-type]  # click's types

    return _decorated(command, _TARGET_OPTIONS)


def manner_options(*, asks: bool) -> Callable[[Callable[..., object]], Callable[..., object]]:
    """Give a command the options, as its argument `manner`; `asks`: a server may have questions."""

    def decorate(function: Callable[..., object]) -> Callable[..., object]:
        @wraps(function)
        def command(**given: object) -> object:
            named = {name: given.pop(name) for name in Manner.__struct_fields__ if name in given}
            return function(**given, manner=Manner(**named))  # type: ignore[arg-type]  # click's types

        return _decorated(command, (*_MANNER_OPTIONS, *((_ANSWER,) if asks else ())))

    return decorate


def _split(command_line: str) -> tuple[str, ...]:
    """Split as a shell would, without one: nothing is expanded. Raises click.UsageError."""
    try:
        return tuple(shlex.split(command_line))
    except ValueError as error:
        raise click.UsageError(f"--command cannot be split into words: {error}") from None


def _decorated(
    command: Callable[..., object],
    options: tuple[Callable[[Callable[..., object]], Callable[..., object]], ...],
) -> Callable[..., object]:
    for option in reversed(options):
        command = option(command)
    return command


_TARGET_OPTIONS: Final = (
    click.option(
        "--command",
        "command_line",
        metavar="'PROGRAM ...'",
        help="Start this server and talk to it over stdio. Split into words as a shell does, but "
        "no shell runs. Or write it last: -- PROGRAM ARGUMENT...",
    ),
    click.option("--url", metavar="URL", help="Talk to the server at this address."),
    click.option(
        "--header",
        "headers",
        multiple=True,
        metavar="'NAME: VALUE'",
        help="A header for that server. May be repeated. Others on this machine can read it: "
        "secrets belong in --header-env.",
    ),
    click.option(
        "--header-env",
        "header_variables",
        multiple=True,
        metavar="NAME=VARIABLE",
        help="A header whose value an environment variable holds. May be repeated.",
    ),
    click.option(
        "--allow-private",
        is_flag=True,
        help="Let the address lead into a private network. This machine itself needs no leave.",
    ),
    click.option(
        "--era",
        type=click.Choice(["handshake", "stateless"]),
        help="How to speak with it: until MCP 2025-11-25, or from 2026-07-28 on. Left out, it is "
        "found out.",
    ),
    click.option("--server", metavar="SERVER", help=f"Talk to this server of FILE. {_HERE}"),
    click.option("--config", metavar="FILE", help="An .mcp.json that names servers."),
)
_MANNER_OPTIONS: Final = (
    click.option("--json", "as_json", is_flag=True, help="Print one JSON document."),
    click.option(
        "--timeout",
        type=click.FloatRange(min=0, min_open=True),
        metavar="SECONDS",
        help="How long to wait for the connection, and again for the answer.",
    ),
    click.option(
        "--quiet", "-q", is_flag=True, help="Show neither progress nor what the server logs."
    ),
    click.option(
        "--verbose", "-v", is_flag=True, help="Show all that the server logs and writes to stderr."
    ),
)
_ANSWER: Final = click.option(
    "--answer",
    "answers",
    multiple=True,
    metavar="FIELD=VALUE",
    help="Agree beforehand to one question of the server that asks for this field. May be "
    "repeated; each is used once.",
)

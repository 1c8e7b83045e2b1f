"""The options that say who may call what, and how much of it, and what they do to a server.

Every command that loads a server takes them, so that `check` judges exactly what `serve` serves.
What they need beyond click is imported when they are applied: `version` must not wait for it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from functools import wraps
from typing import TYPE_CHECKING, Final

import click

from raxol_mcp.wire.values import Value

if TYPE_CHECKING:
    from raxol_mcp.server.app import Server
    from raxol_mcp.server.authorizer import Authorizer

__all__ = ["Guards", "guard_options", "names_in", "refuse_empty"]

_logger = logging.getLogger("raxol_mcp.cli")

_FOR_TOOLS: Final = ("allow_tools", "allow_all_tools", "authorizer")
_FOR_READS: Final = ("allow_reads", "read_authorizer")
_BOUNDS: Final = ("max_in_flight", "callback_timeout", "elicitation_timeout")


class Guards(Value, frozen=True, kw_only=True):
    """What the options of one command line say.

    What is not named leaves the server as it is; the two lists are empty then, and hold the raw
    texts, names with commas between them, otherwise. Raises click.UsageError for options that
    contradict each other, for a list without a name and for reading methods that do not exist.
    """

    allow_tools: tuple[str, ...] = ()
    allow_all_tools: bool = False
    authorizer: str | None = None
    allow_reads: tuple[str, ...] = ()
    read_authorizer: str | None = None
    max_in_flight: int | None = None
    callback_timeout: float | None = None
    elicitation_timeout: float | None = None

    def __post_init__(self) -> None:
        for group in (_FOR_TOOLS, _FOR_READS):
            named = [_option(name) for name in group if getattr(self, name)]
            if len(named) > 1:
                raise click.UsageError(f"{' and '.join(named)} exclude each other: name one")
        refuse_empty("--allow-tools", self.allow_tools)
        refuse_empty("--allow-reads", self.allow_reads)
        for name in names_in(self.allow_reads):
            if name not in (reads := _reads()):
                raise click.UsageError(
                    f"--allow-reads names {name!r}, which is none of {', '.join(reads)}"
                )

    def apply(self, server: Server) -> None:
        """Put them on a server that has not started. Raises ConfigurationError.

        Who names an option for tools has decided: the server's authorizer is replaced, and the
        new one counts as configured, whatever it was.
        """
        server.guard(authorizer=self._for_tools(server), read_authorizer=self._for_reads())
        bounds = {name: value for name in _BOUNDS if (value := getattr(self, name)) is not None}
        if bounds:
            limits = server.limits
            kept = {name: getattr(limits, name) for name in limits.__struct_fields__}
            server.bound(type(limits)(**{**kept, **bounds}))  # not a copy: its values are checked

    def _for_tools(self, server: Server) -> Authorizer | None:
        from raxol_mcp.cli.loading import load_authorizer
        from raxol_mcp.server.authorizer import allow_all, allowlist

        if self.allow_tools:
            names = names_in(self.allow_tools)
            for name in names:
                if server.registry.tool(name) is None:
                    _logger.warning("--allow-tools names %r, and there is no such tool yet", name)
            return allowlist(names)
        if self.allow_all_tools:
            return allow_all()
        return None if self.authorizer is None else load_authorizer(self.authorizer)

    def _for_reads(self) -> Authorizer | None:
        from raxol_mcp.cli.loading import load_authorizer
        from raxol_mcp.server.authorizer import allowlist

        if self.allow_reads:
            return allowlist(names_in(self.allow_reads))
        return None if self.read_authorizer is None else load_authorizer(self.read_authorizer)


def guard_options(function: Callable[..., object]) -> Callable[..., object]:
    """Give a command the options; `function` is called with them as its argument `guards`."""

    @wraps(function)
    def command(**given: object) -> object:
        named = {name: given.pop(name) for name in Guards.__struct_fields__}
        return function(**given, guards=Guards(**named))  # type: ignore[arg-type]  # click's types

    decorated: Callable[..., object] = command
    for option in reversed(_OPTIONS):
        decorated = option(decorated)
    return decorated


_SECONDS: Final = click.FloatRange(min=0, min_open=True)
_OPTIONS: Final = (
    click.option(
        "--allow-tools",
        multiple=True,
        metavar="NAME,...",
        help="Allow these tools and deny every other. May be repeated.",
    ),
    click.option("--allow-all-tools", is_flag=True, help="Allow every tool, sensitive or not."),
    click.option(
        "--authorizer",
        metavar="MODULE:NAME",
        help="Let this function decide about every call of a tool.",
    ),
    click.option(
        "--allow-reads",
        multiple=True,
        metavar="METHOD,...",
        help="Allow these reads, such as tools/list, and deny every other. May be repeated.",
    ),
    click.option(
        "--read-authorizer",
        metavar="MODULE:NAME",
        help="Let this function decide about every read.",
    ),
    click.option(
        "--max-in-flight",
        type=click.IntRange(min=1),
        metavar="N",
        help="How many calls may run at once.",
    ),
    click.option(
        "--callback-timeout", type=_SECONDS, metavar="SECONDS", help="How long a call may run."
    ),
    click.option(
        "--elicitation-timeout",
        type=_SECONDS,
        metavar="SECONDS",
        help="How long a person may take to answer a question.",
    ),
)


def _reads() -> list[str]:
    """Name what a read authorizer is asked about.

    A listen is asked about part by part, as the reads that it amounts to.
    """
    from raxol_mcp.core.methods import HANDSHAKE_METHODS, STATELESS_METHODS

    return sorted(
        name
        for name, method in {**HANDSHAKE_METHODS, **STATELESS_METHODS}.items()
        if not method.inline and name not in ("tools/call", "subscriptions/listen")
    )


def _option(name: str) -> str:
    return "--" + name.replace("_", "-")


def names_in(texts: Iterable[str]) -> list[str]:
    """List the names of an option that may be repeated and may hold several, with commas."""
    return [name for text in texts for part in text.split(",") if (name := part.strip())]


def refuse_empty(option: str, texts: Iterable[str]) -> None:
    """Raise click.UsageError for a list that names nothing, such as a shell's empty variable."""
    if not all(names_in([text]) for text in texts):
        raise click.UsageError(f"{option} names nothing: give a name, or leave it out")

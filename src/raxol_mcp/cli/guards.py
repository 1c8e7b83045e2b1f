"""The options that say who may call what and how much of it, and what they do to a server.

Every command that loads a server takes them, so that `check` judges exactly what `serve` serves.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar

import click

from raxol_mcp.cli.loading import load_authorizer
from raxol_mcp.core.methods import HANDSHAKE_METHODS, STATELESS_METHODS
from raxol_mcp.server.authorizer import allow_all, allowlist

if TYPE_CHECKING:
    from collections.abc import Callable

    from raxol_mcp.server.app import Server
    from raxol_mcp.server.authorizer import Authorizer

__all__ = ["Guards", "guard_options"]

_logger = logging.getLogger("raxol_mcp.cli")
_C = TypeVar("_C", bound="Callable[..., object]")

# What a read authorizer is asked about. A listen is asked about part by part, as the reads that
# it amounts to.
_READS = sorted(
    name
    for name, method in {**HANDSHAKE_METHODS, **STATELESS_METHODS}.items()
    if not method.inline and name not in ("tools/call", "subscriptions/listen")
)


class _Names(click.ParamType[list[str]]):
    """Names with commas between them, spaces around them ignored."""

    name = "names"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> list[str]:
        assert isinstance(value, str), "an option is text"
        return [name for part in value.split(",") if (name := part.strip())]


@dataclass(frozen=True, slots=True, kw_only=True)
class Guards:
    """What the options of one command line say. None: not named, so the server's own counts."""

    allow_tools: list[str] | None = None
    allow_all_tools: bool = False
    authorizer: str | None = None
    allow_reads: list[str] | None = None
    read_authorizer: str | None = None
    max_in_flight: int | None = None
    callback_timeout: float | None = None
    elicitation_timeout: float | None = None

    def apply(self, server: Server) -> None:
        """Put them on a server that has not started.

        Who names an option for tools has decided: the server's authorizer is replaced and counts
        as configured, whatever it was. Raises ConfigurationError.
        """
        server.guard(authorizer=self._for_tools(server), read_authorizer=self._for_reads())
        bounds = {
            name: value
            for name in ("max_in_flight", "callback_timeout", "elicitation_timeout")
            if (value := getattr(self, name)) is not None
        }
        if bounds:
            server.bound(replace(server.limits, **bounds))

    def _for_tools(self, server: Server) -> Authorizer | None:
        if self.allow_tools is not None:
            for name in self.allow_tools:
                if server.registry.tool(name) is None:
                    _logger.warning("--allow-tools names %r, but there is no such tool yet", name)
            return allowlist(self.allow_tools)
        if self.allow_all_tools:
            return allow_all()
        return None if self.authorizer is None else load_authorizer(self.authorizer)

    def _for_reads(self) -> Authorizer | None:
        if self.allow_reads is not None:
            return allowlist(self.allow_reads)
        return None if self.read_authorizer is None else load_authorizer(self.read_authorizer)


def guard_options(command: _C) -> _C:
    """Give a click command these options; it takes them as the keyword argument `guards`."""
    options = (
        click.option(
            "--allow-tools",
            type=_Names(),
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
            type=_Names(),
            multiple=True,
            metavar="METHOD,...",
            help="Allow these reading methods, such as tools/list, and deny every other.",
        ),
        click.option(
            "--read-authorizer",
            metavar="MODULE:NAME",
            help="Let this function decide about every read.",
        ),
        click.option("--max-in-flight", type=int, metavar="N", help="How many calls may run."),
        click.option(
            "--callback-timeout", type=float, metavar="SECONDS", help="How long a call may run."
        ),
        click.option(
            "--elicitation-timeout",
            type=float,
            metavar="SECONDS",
            help="How long a person may take to answer a question.",
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command


def guards_of(
    *,
    allow_tools: Iterable[list[str]],
    allow_all_tools: bool,
    authorizer: str | None,
    allow_reads: Iterable[list[str]],
    read_authorizer: str | None,
    **bounds: object,
) -> Guards:
    ...

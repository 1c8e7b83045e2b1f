"""`raxol-mcp serve-app MODULE:App`: a terminal app as a server, unchanged.

What it serves is made by `raxol_mcp.views.textual`; how it is served is `serve`'s.
"""

from __future__ import annotations

import logging
import os
from typing import TYPE_CHECKING, Final, Literal, cast

import click

from raxol_mcp.cli.guards import guard_options
from raxol_mcp.cli.network import network_options
from raxol_mcp.errors import ConfigurationError

if TYPE_CHECKING:
    from raxol_mcp.cli.guards import Guards
    from raxol_mcp.cli.network import Network
    from raxol_mcp.cli.surroundings import Surroundings
    from raxol_mcp.server.app import Server
    from raxol_mcp.views.textual import MakeApp

__all__ = ["app_server", "serve_app"]

_LOG_FORMAT: Final = "%(asctime)s %(levelname)s %(name)s: %(message)s"
_SIZES: Final = click.IntRange(10, 1000)


@click.command("serve-app")
@click.argument("target", metavar="MODULE[:APP]")
@guard_options
@network_options
@click.option("--columns", type=_SIZES, default=120, show_default=True, help="Of its screen.")
@click.option("--rows", type=_SIZES, default=40, show_default=True, help="Of its screen.")
@click.option(
    "--max-sessions",
    type=click.IntRange(1, 1000),
    default=8,
    show_default=True,
    metavar="N",
    help="How many apps may run at once.",
)
@click.option(
    "--idle-timeout",
    type=click.FloatRange(min=0, min_open=True),
    default=1800.0,
    show_default=True,
    metavar="SECONDS",
    help="How long a session may go unused.",
)
@click.option(
    "--lens",
    type=click.Choice(["all", "focused", "hover"]),
    help="Of whose tools tools/list shows: all, or of the focused widget, or of that under the "
    "pointer as well. Every tool can be called all the same.",
)
@click.option(
    "--max-tools",
    type=click.IntRange(1, 4096),
    metavar="N",
    help="How many of them at most; 15 where only --lens is given.",
)
@click.option(
    "--log-level",
    type=click.Choice(["debug", "info", "warning", "error"]),
    help="What is logged to stderr. Left out: what the app's own code set up, else warnings.",
)
@click.pass_obj
def serve_app(
    surroundings: Surroundings | None,
    target: str,
    guards: Guards,
    network: Network,
    columns: int,
    rows: int,
    max_sessions: int,
    idle_timeout: float,
    lens: Literal["all", "focused", "hover"] | None,
    max_tools: int | None,
    log_level: str | None,
) -> int:
    """Serve a Textual app to agents, over stdin and stdout until stdin ends; or over HTTP.

    MODULE is a dotted module or the path of a .py file; APP is the app's class in it, or a
    function that returns a new app (when left out, the only class of an app that is declared
    there). A client starts sessions of it; what is on the screen of each becomes its tools.
    """
    from raxol_mcp.transports.descriptors import Claim

    # As for `serve`: before anything of the user's is imported.
    claim = None if network.http else Claim()
    end_process = None if surroundings is None else surroundings.end_process
    from raxol_mcp.cli import serving

    if log_level is not None:
        logging.basicConfig(level=log_level.upper(), format=_LOG_FORMAT)
    server = app_server(
        target,
        size=(columns, rows),
        max_sessions=max_sessions,
        # A pipe has one client; on a network nobody takes all of them.
        max_of_one=max(1, max_sessions // 2) if network.http else max_sessions,
        idle_timeout=idle_timeout,
        lens=None if lens is None and max_tools is None else (lens or "all", max_tools or 15),
    )
    logging.basicConfig(format=_LOG_FORMAT)
    guards.apply(server)
    if claim is None:
        return serving.serve_network(server, network, end_process=end_process)
    if os.isatty(claim.stdin_fd):
        click.echo(
            f"raxol-mcp: serving {server.name} over stdio, and this terminal is its client: "
            "give this command to an MCP client instead, or end it with Ctrl-D",
            err=True,
        )
    return serving.serve(server, claim.stdin_fd, claim.stdout_fd, end_process=end_process)


def app_server(
    target: str,
    *,
    size: tuple[int, int],
    max_sessions: int,
    max_of_one: int | None = None,
    idle_timeout: float,
    lens: tuple[Literal["all", "focused", "hover"], int] | None = None,
) -> Server:
    """Make the server of the app that `MODULE[:APP]` names. Raises ConfigurationError.

    `lens` is a mode and how many tools it shows at most.
    """
    try:
        from raxol_mcp.views.textual import app_class_of, no_app_runs, textual_server
    except ImportError as error:
        if (error.name or "").partition(".")[0] != "textual":
            raise
        raise ConfigurationError(
            'Textual is not installed here: pip install "raxol-mcp[textual]"'
        ) from None
    from raxol_mcp.cli.loading import load_named
    from raxol_mcp.views.focus import FocusLens

    with no_app_runs():
        module, found = load_named(target)
    make_app = app_class_of(module) if found is module else cast("MakeApp[object]", found)
    return textual_server(
        make_app,  # and judged there, whatever it is
        size=size,
        max_sessions=max_sessions,
        max_of_one=max_of_one or max_sessions,
        idle_timeout=idle_timeout,
        lens=None if lens is None else FocusLens(mode=lens[0], max_tools=lens[1]),
    )

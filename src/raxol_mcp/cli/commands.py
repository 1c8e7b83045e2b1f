"""The commands of `raxol-mcp`: what they take, what they print, and their exit codes.

Errors are one sentence on stderr that says what to do. `serve` writes nothing but messages of
the protocol to stdout, over HTTP nothing at all; every other command prints its result there.
Those that talk to a server are in modules of their own, which are imported when they are named.
"""

from __future__ import annotations

import errno
import logging
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, NoReturn

import click

from raxol_mcp.cli.ending import end_process
from raxol_mcp.cli.exit_codes import FAILED, INTERRUPTED, OK, USAGE
from raxol_mcp.cli.guards import guard_options
from raxol_mcp.cli.network import network_options
from raxol_mcp.cli.surroundings import Surroundings
from raxol_mcp.errors import ConfigurationError
from raxol_mcp.version import VERSION

if TYPE_CHECKING:
    from raxol_mcp.cli.guards import Guards
    from raxol_mcp.cli.network import Network

__all__ = ["command_line", "main"]

_ELSEWHERE = ("call", "prompt", "read", "serve-app", "status", "tools", "trust")

_LOG_FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"
_TARGET_HELP = (
    "MODULE is a dotted module or the path of a .py file; SERVER is the server in it, or a "
    'function that returns one ("server" when left out).'
)


def main() -> NoReturn:
    """Run the command line of this process, and end it."""
    command_line.main(obj=Surroundings(end_process=end_process))


class _CommandLine(click.Group):
    """A group whose errors are one line, and whose commands return their exit codes."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Name every command, those that are not imported yet as well."""
        return sorted([*super().list_commands(ctx), *_ELSEWHERE])

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Find a command, and import it if need be."""
        if cmd_name not in _ELSEWHERE:
            return super().get_command(ctx, cmd_name)
        if cmd_name == "trust":
            from raxol_mcp.cli.trusting import trust

            return trust
        if cmd_name == "serve-app":
            from raxol_mcp.cli.serving_app import serve_app

            return serve_app
        from raxol_mcp.cli.client_commands import COMMANDS

        return COMMANDS[cmd_name]

    def main(  # type: ignore[override]  # click overloads it for a mode that is not used here
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        **extra: object,
    ) -> NoReturn:
        extra["standalone_mode"] = False
        try:
            # Not the name of the file, which is `__main__.py` for `python -m`.
            code = super().main(args, prog_name or self.name, **extra)  # type: ignore[call-overload]  # as above
        except click.UsageError as error:
            path = "raxol-mcp" if error.ctx is None else error.ctx.command_path
            code = _failed(f"{error.format_message().rstrip('.')}; see {path} --help", USAGE)
        except click.ClickException as error:
            code = _failed(error.format_message(), FAILED)
        except ConfigurationError as error:
            code = _failed(str(error), FAILED)
        except (KeyboardInterrupt, click.Abort):
            code = INTERRUPTED
        except OSError as error:
            if error.errno != errno.EPIPE:
                raise
            code = FAILED  # whoever read our output has gone
        sys.exit(code)


@click.group("raxol-mcp", cls=_CommandLine, invoke_without_command=True)
@click.version_option(VERSION, message=f"raxol-mcp {VERSION}")
@click.pass_context
def command_line(context: click.Context) -> int | None:
    """Serve and check MCP servers written with raxol-mcp, and use any MCP server."""
    if context.invoked_subcommand is not None:
        return None
    click.echo(context.get_help(), err=True)
    context.exit(USAGE)


@command_line.command(
    "serve",
    help=f"""Serve MODULE:SERVER over stdin and stdout, until stdin ends; or over HTTP.

    {_TARGET_HELP}
    """,
)
@click.argument("target", metavar="MODULE[:SERVER]")
@guard_options
@network_options
@click.option(
    "--log-level",
    type=click.Choice(["debug", "info", "warning", "error"]),
    help="What is logged to stderr. Left out: what the server's own code set up, else warnings.",
)
@click.pass_obj
def _serve(
    surroundings: Surroundings | None,
    target: str,
    guards: Guards,
    network: Network,
    log_level: str | None,
) -> int:
    """Serve a server over stdio or HTTP; see the help text."""
    from raxol_mcp.transports.descriptors import Claim

    # Before anything of the user's is imported: what that prints must not reach the client.
    # Nothing is put back afterwards, because exit functions may print as well.
    claim = None if network.http else Claim()
    end_process = None if surroundings is None else surroundings.end_process
    from raxol_mcp.cli import serving
    from raxol_mcp.cli.loading import load_server

    if log_level is not None:
        logging.basicConfig(level=log_level.upper(), format=_LOG_FORMAT)
    server = load_server(target)
    # Changes nothing when the user's code has set logging up.
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


@command_line.command(
    "check",
    help=f"""Say what MODULE:SERVER offers, how it is guarded, and whether it would start.

    {_TARGET_HELP}

    Nothing is started and no tool is called. The exit code is 1 when the server would refuse to
    start. What a network transport would refuse is told, and counts with --http.
    """,
)
@click.argument("target", metavar="MODULE[:SERVER]")
@guard_options
@network_options
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of text.")
def _check(target: str, guards: Guards, network: Network, as_json: bool) -> int:
    """Report on a server; see the help text."""
    from raxol_mcp.transports.descriptors import Claim

    claim = Claim()  # what the import prints must not get into the report
    try:
        from raxol_mcp.cli.checking import described, report_of
        from raxol_mcp.cli.loading import load_server

        logging.basicConfig(format=_LOG_FORMAT)
        server = load_server(target)
        guards.apply(server)
        report = report_of(server, network)
    finally:
        claim.restore()
    if as_json:
        import json

        click.echo(json.dumps(report, indent=2))
    else:
        click.echo(described(report), nl=False)
    refused = report["refusals"] or (network.http and report["network_refusals"])
    return FAILED if refused else OK


@command_line.command("version")
def _version() -> int:
    """Print the version."""
    click.echo(f"raxol-mcp {VERSION}")
    return OK


def _failed(sentence: str, code: int) -> int:
    click.echo(f"raxol-mcp: {' '.join(sentence.split())}", err=True)
    return code

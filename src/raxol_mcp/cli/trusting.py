"""`raxol-mcp trust`: shows what a file would start, and remembers that its reader allowed it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from raxol_mcp.cli.exit_codes import OK
from raxol_mcp.cli.surroundings import Surroundings
from raxol_mcp.errors import ConfigurationError

if TYPE_CHECKING:
    from raxol_mcp.cli.client_session import Session

__all__ = ["trust"]


@click.command("trust")
@click.argument("file", default=".mcp.json")
@click.option("--revoke", is_flag=True, help="Forget that FILE was allowed.")
@click.option("--yes", is_flag=True, help="Allow what is shown, without the question.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_obj
def trust(
    surroundings: Surroundings | None, *, file: str, revoke: bool, yes: bool, as_json: bool
) -> int:
    """Show what FILE would start, ask, and remember the answer. FILE is .mcp.json when left out.

    Nothing that a file names is started before its content has been allowed; when it changes, it
    has to be allowed again. Nothing is started here.
    """
    from raxol_mcp.cli.client_options import Manner
    from raxol_mcp.cli.client_session import run_session

    if revoke and yes:
        raise click.UsageError("--revoke and --yes exclude each other: name one")

    async def work(session: Session) -> int:
        if revoke:
            return _revoked(session, file)
        return await _allowed(session, file, yes=yes, as_json=as_json)

    return run_session(surroundings or Surroundings(), Manner(as_json=as_json), work)


def _revoked(session: Session, file: str) -> int:
    was_allowed = session.store.revoke(file)
    told = "it is no longer allowed" if was_allowed else "it was not allowed"
    document = {"path": file, "was_allowed": was_allowed, "allowed": False}
    session.show(document, lambda printer: f"{told}\n")
    return OK


async def _allowed(session: Session, file: str, *, yes: bool, as_json: bool) -> int:
    from raxol_mcp.cli.client_targets import consented
    from raxol_mcp.client.config import load
    from raxol_mcp.client.consent import describe_for_consent

    config, store = load(file), session.store
    standing = store.state(config)
    if not standing.allowed:
        if yes or session.terminal is None:
            # Into a pipe or a log, where a question would be read by nobody.
            description = describe_for_consent(config)
            if as_json:
                session.screen.note(description)
            else:
                session.write(f"{description}\n")
            if not yes:
                raise ConfigurationError(
                    "nothing was allowed: there is no terminal to ask at. Who has read what the "
                    "file would start can allow it with --yes"
                )
        elif not await consented(config, store, session.terminal):
            raise ConfigurationError("nothing was allowed")
        store.allow(config)
        standing = store.state(config)
    document = {
        "path": config.path,
        "digest": config.digest,
        "servers": [declaration.name for declaration in config.entries],
        "allowed": True,
        "message": standing.text,
    }
    session.show(document, lambda printer: f"allowed: {standing.text}\n")
    return OK

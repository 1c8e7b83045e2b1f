"""From the server that a command line names to the spec of a client.

Reads the files that name servers, and asks before one that is not trusted counts. Starts nothing.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

import click

from raxol_mcp.cli.client_options import Target
from raxol_mcp.cli.screen import Screen
from raxol_mcp.cli.screen_text import wrapped
from raxol_mcp.cli.terminal import GaveUp, Terminal
from raxol_mcp.errors import ConfigurationError
from raxol_mcp.wire.texts import printable

if TYPE_CHECKING:
    from raxol_mcp.client.config import Config
    from raxol_mcp.client.entries import Entry, TrustedConfig
    from raxol_mcp.client.spec import ClientSpec
    from raxol_mcp.client.trust import TrustStore

__all__ = ["LOCAL_FILE", "Targets", "consented"]

LOCAL_FILE: Final = ".mcp.json"
"""The file of a folder that names servers."""

_LOOPBACK: Final = re.compile(
    r"https?://(?:localhost\.?|127(?:\.[0-9]{1,3}){3}|\[::1\])(?:[:/?#]|$)", re.IGNORECASE
)
# Programs that only run others: what they run says more about who asks.
_RUNNERS: Final = re.compile(r"(?:python[0-9.]*|node|npx|uvx|bunx|deno|pipx|uv)")
_MAX_NAME: Final = 60


class Targets:
    """Finds servers, with the trust of one user and the variables of one process."""

    def __init__(
        self,
        screen: Screen,
        terminal: Terminal | None,
        *,
        store: TrustStore,
        environ: Mapping[str, str],
    ) -> None:
        self._screen = screen
        self._terminal = terminal
        self._store = store
        self._environ = environ

    async def spec(self, target: Target) -> ClientSpec:
        """Give the spec of one server.

        Raises ConfigurationError, also when the person does not trust the file, and
        click.UsageError.
        """
        from raxol_mcp.client.spec import ClientSpec

        if target.argv is not None:
            command, *arguments = target.argv
            return ClientSpec(
                _name(target.argv),
                command=command,
                args=arguments,
                era=target.era,
                fail_fast=True,
            )
        if target.url is None:
            return await self._declared(target)
        return ClientSpec(
            _host(target.url),
            url=target.url,
            headers=target.header_pairs(self._environ),
            # Who types an address of this very machine means it. A redirect is not followed, so
            # nothing but this address is reached.
            allow_private=target.allow_private or bool(_LOOPBACK.match(target.url)),
            era=target.era,
            fail_fast=True,
        )

    async def entries(self, target: Target) -> list[Entry]:
        """Give every server of a file, or the one that is named."""
        from raxol_mcp.client.entries import Entry

        if target.argv is not None or target.url is not None or target.server is not None:
            spec = await self.spec(target)
            return [Entry(spec.name, spec=spec)]
        trusted = await self._trusted(self._files(target)[0])
        return trusted.specs(self._environ)

    async def _declared(self, target: Target) -> ClientSpec:
        files = self._files(target)
        name, config = target.server, files[0]
        if name is None:
            names = [declaration.name for declaration in config.entries]
            if len(names) != 1:
                known = ", ".join(names) or "none"
                raise click.UsageError(f"name a server with --server; {config.path!r} has: {known}")
            (name,) = names
        else:
            # What lies in this folder comes first: it is what the person sees, and is asked about.
            having = (
                file
                for file in files
                if any(declaration.name == name for declaration in file.entries)
            )
            config = next(having, config)
        try:
            return (await self._trusted(config)).spec(name, self._environ)
        except KeyError as error:
            raise ConfigurationError(str(error.args[0])) from None

    def _files(self, target: Target) -> list[Config]:
        from raxol_mcp.client.config import load

        if target.config is not None:
            return [load(target.config)]
        own = self._store.own_path
        found = [path for path in (LOCAL_FILE, own) if path is not None and os.path.lexists(path)]
        if not found:
            raise click.UsageError(
                f"name a server with --command, --url or --config: there is no {LOCAL_FILE} here"
            )
        return [load(path) for path in found]

    async def _trusted(self, config: Config) -> TrustedConfig:
        """Open a file, after the person has allowed it if need be. Raises ConfigurationError."""
        if self._terminal is not None and not self._store.state(config).allowed:
            if not await consented(config, self._store, self._terminal):
                raise ConfigurationError(f"{printable(config.path)} was not allowed")
            self._store.allow(config)
        return self._store.trusted(config)


async def consented(config: Config, store: TrustStore, terminal: Terminal) -> bool:
    """Show a person all that a file would start, and ask whether it may. Allows nothing."""
    from raxol_mcp.client.consent import describe_for_consent

    screen = terminal.screen
    async with terminal.question():
        for line in [f"? {store.state(config).text}:", *describe_for_consent(config).split("\n")]:
            indent = len(line) - len(line.lstrip())
            first, *more = wrapped(line, screen.width - indent - 2)
            # Continued by us and further in: no long argument may look like the next server.
            for part in [first, *(f"{' ' * (indent + 2)}{part}" for part in more)]:
                screen.ask(f"{part}\n")
        try:
            return await terminal.yes("  Allow this file, as it is now?")
        except GaveUp:
            return False


def _name(argv: tuple[str, ...]) -> str:
    """Name a server that has no name, so that a person recognises it."""
    command, *arguments = (os.path.basename(word.rstrip("/")) for word in argv)
    if _RUNNERS.fullmatch(command):
        plain = [word for word in arguments if word and not word.startswith("-")]
        command = plain[0] if plain else command
    return printable(command)[:_MAX_NAME] or "server"


def _host(url: str) -> str:
    from urllib.parse import urlsplit

    try:
        host = urlsplit(url).hostname
    except ValueError:
        host = None
    return printable(host or "server")[:_MAX_NAME]

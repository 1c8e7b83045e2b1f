"""Textual apps, served: `textual_server(MyApp)` is a server that starts `MyApp` for its clients.

Needs the extra: `pip install "raxol-mcp[textual]"`. Textual is loaded when this module is.
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from typing import TYPE_CHECKING, Final, NoReturn, TypeAlias, TypeVar

from textual.app import App

from raxol_mcp.errors import ConfigurationError
from raxol_mcp.server.app import Server
from raxol_mcp.views.asking import asked_about
from raxol_mcp.views.focus import FocusLens, Lenses
from raxol_mcp.views.session_tools import add_session_tools
from raxol_mcp.views.sessions import (
    IDLE_TIMEOUT,
    MAX_SESSIONS,
    MAX_SESSIONS_OF_ONE,
    SIZE,
    SessionHost,
)
from raxol_mcp.views.textual_app import TextualApp

if TYPE_CHECKING:
    from types import ModuleType

    from raxol_mcp.server.authorizer import Authorizer
    from raxol_mcp.views.running import Launch
    from raxol_mcp.views.synchronizer import Question

__all__ = [
    "INSTRUCTIONS",
    "MakeApp",
    "app_class_of",
    "launch_of",
    "no_app_runs",
    "textual_server",
]

R = TypeVar("R")
MakeApp: TypeAlias = Callable[[], App[R]]
"""Makes a new app: a class of `textual.app.App`, or a function without parameters."""

INSTRUCTIONS: Final = (
    "This server runs a terminal app for you. Call start_session; the widgets on the app's screen "
    "then are tools named <session>.<widget>.<action>, which change as the screen does. "
    "screenshot shows the screen, send_keys types what has no tool, stop_session ends it."
)


def textual_server(
    make_app: MakeApp[R],
    *,
    name: str | None = None,
    max_sessions: int = MAX_SESSIONS,
    max_of_one: int = MAX_SESSIONS_OF_ONE,
    idle_timeout: float = IDLE_TIMEOUT,
    size: tuple[int, int] = SIZE,
    lens: FocusLens | None = None,
    question: Question | None = asked_about,
    authorizer: Authorizer | None = None,
    read_authorizer: Authorizer | None = None,
) -> Server:
    """Make a server that runs `make_app()` for each session. See `SessionHost` for the bounds.

    `name` is the server's; by default that of the app. `lens` is what a connection's list of
    tools is narrowed to. Raises ConfigurationError.
    """

    @asynccontextmanager
    async def sessions_end(_: Server) -> AsyncIterator[SessionHost]:
        try:
            yield host
        finally:
            await host.close()

    server = Server(
        name or str(getattr(make_app, "__name__", "textual-app")),
        instructions=INSTRUCTIONS,
        authorizer=authorizer,
        read_authorizer=read_authorizer,
        authorizer_source="default" if authorizer is None else "configured",
        lifespan=sessions_end,
    )
    host = SessionHost(
        server,
        launch_of(make_app),
        max_sessions=max_sessions,
        max_of_one=max_of_one,
        idle_timeout=idle_timeout,
        size=size,
        lenses=Lenses(server, default=lens),
        question=question,
    )
    add_session_tools(host)
    return server


def launch_of(make_app: MakeApp[R]) -> Launch:
    """Make what a `SessionHost` launches apps with. Raises ConfigurationError."""
    if isinstance(make_app, App):
        raise ConfigurationError(
            "an app can run once, and every session needs its own: give its class, or a function "
            "that returns a new one"
        )
    given: object = make_app  # whatever a command line named
    if not callable(given) or (isinstance(given, type) and not issubclass(given, App)):
        raise ConfigurationError(f"a Textual app was expected, got: {make_app!r}")
    if not _works_without_arguments(make_app):
        raise ConfigurationError(
            f"it is called without arguments, and returns a new app: {make_app!r} does not"
        )
    return partial(TextualApp, make_app)


def _works_without_arguments(make_app: Callable[[], object]) -> bool:
    if inspect.iscoroutinefunction(make_app):
        return False
    try:
        signature = inspect.signature(make_app)
    except ValueError:  # of what is not written in Python: calling it will tell
        return True
    try:
        signature.bind()
    except TypeError:
        return False
    return True


def app_class_of(module: ModuleType) -> Callable[[], App[object]]:
    """Find the one class of an app that a module declares. Raises ConfigurationError."""
    found = [
        value
        for value in vars(module).values()
        if isinstance(value, type) and issubclass(value, App)
        if value.__module__ == module.__name__
    ]
    if len(found) != 1:
        name = module.__name__
        names = ", ".join(f"{name}:{value.__name__}" for value in found) or "none"
        raise ConfigurationError(f"{name} declares not one Textual app but: {names}; name one")
    return found[0]


@contextmanager
def no_app_runs() -> Iterator[None]:
    """While a module is imported: one that runs its app then would take the terminal, for ever."""

    def refused(self: App[object], *args: object, **options: object) -> NoReturn:
        raise ConfigurationError(
            'it runs its app when it is imported; guard that with if __name__ == "__main__"'
        )

    run = App.run
    App.run = refused  # type: ignore[assignment, method-assign]  # what is called here must not run
    try:
        yield
    finally:
        App.run = run  # type: ignore[method-assign]  # as it was

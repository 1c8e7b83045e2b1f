"""Sessions of an app: started for somebody, served to them alone, ended, and remembered as ended.

Keeps who owns what, the bounds and the clock. What the app is and where it runs is the launch's;
what its view offers is the synchronizer's; the tools that clients start and stop sessions with
are in `session_tools`.

| a session ends | and its tools answer |
|---|---|
| `stop` was called | it was stopped |
| nobody used it for `idle_timeout` | it was not used for so long |
| its app ended | its app has ended |
| its app crashed; the traceback is in the log | its app crashed |
| the connection that owned it is gone | who had started it went away |

The name of a session is never used again, so that a tool a client remembers cannot mean another.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Hashable
from itertools import count
from typing import TYPE_CHECKING, Final

from raxol_mcp.errors import ConfigurationError, ToolError
from raxol_mcp.views.asking import asked_about
from raxol_mcp.views.running import AppEnded, Launch, RunningApp, Seen
from raxol_mcp.views.synchronizer import Synchronizer
from raxol_mcp.views.tree import Node

if TYPE_CHECKING:
    from raxol_mcp.server.app import Server
    from raxol_mcp.server.authorizer import AuthorizationContext
    from raxol_mcp.server.context import Context
    from raxol_mcp.views.focus import Lenses
    from raxol_mcp.views.synchronizer import Question

__all__ = ["Session", "SessionHost"]

_logger = logging.getLogger("raxol_mcp.views")

MAX_SESSIONS: Final = 8
MAX_SESSIONS_OF_ONE: Final = 4
IDLE_TIMEOUT: Final = 1800.0  # seconds
SIZE: Final = (120, 40)
MAX_REMEMBERED: Final = 1_000  # sessions that have ended
_STOPPED: Final = "it was stopped"
_ENDED: Final = "its app has ended"
_CRASHED: Final = "its app crashed"
_LEFT: Final = "who had started it went away"


class Session:
    """One running app and what is derived from it. Made by a `SessionHost`."""

    def __init__(self, name: str, owner: Hashable, app: RunningApp, now: float) -> None:
        self.name = name
        self.owner = owner
        self.app = app
        self.started_at = self.used_at = now
        self.seen = Seen(Node("Screen"))
        self.synchronizer: Synchronizer | None = None  # None: it is starting
        self.expiry: asyncio.TimerHandle | None = None

    def __repr__(self) -> str:
        return f"<Session {self.name!r}>"

    def show(self, seen: Seen) -> None:
        """Take what there is to be seen now, and let the tools follow."""
        self.seen = seen
        if self.synchronizer is not None:
            try:
                self.synchronizer.sync()
            except Exception:
                _logger.exception("session %s: its tools do not follow its view", self.name)


class SessionHost:
    """The sessions of the apps that `launch` makes, on `server`, whose loop it lives on.

    At most `max_sessions` at once, and `max_of_one` of them of one owner: an owner is who pays for
    calls (ADR-0009), so one principal, one pipe, or everybody who is anonymous without a session.
    One that is not used for `idle_timeout` seconds is stopped. `size` is columns and rows.
    `question` writes what a person is asked before a sensitive action; see `Synchronizer`.

    `close` ends all of them. Raises ConfigurationError for bounds that cannot be meant.
    """

    def __init__(
        self,
        server: Server,
        launch: Launch,
        *,
        max_sessions: int = MAX_SESSIONS,
        max_of_one: int = MAX_SESSIONS_OF_ONE,
        idle_timeout: float = IDLE_TIMEOUT,
        size: tuple[int, int] = SIZE,
        lenses: Lenses | None = None,
        question: Question | None = asked_about,
    ) -> None:
        if max_sessions < 1 or max_of_one < 1:
            raise ConfigurationError("at least one session must be possible")
        if not 0 < idle_timeout < float("inf"):
            raise ConfigurationError(f"idle_timeout is in seconds, got: {idle_timeout!r}")
        if not all(10 <= side <= 1000 for side in size):
            raise ConfigurationError(f"a size is 10 to 1000 columns and rows, got: {size!r}")
        self.server = server
        self.lenses = lenses
        self._launch = launch
        self._max_sessions = max_sessions
        self._max_of_one = min(max_of_one, max_sessions)
        self._idle_timeout = idle_timeout
        self._size = size
        self._question = question
        self._numbers = count(1)
        self._sessions: dict[str, Session] = {}
        self._lingering: list[RunningApp] = []  # ended for everybody, but not gone
        self._over: dict[str, str] = {}
        self._closed = False
        self._tasks: set[asyncio.Task[object]] = set()
        self._leave = [
            server.on_unknown_tool(self.reply_for),
            server.on_gone(self._gone),
        ]

    # -- for the tools --------------------------------------------------------------------------

    def owner_of(self, context: Context | AuthorizationContext) -> Hashable:
        """Name the owner that a caller is: its principal, else the share its calls count against.

        None for a caller that is gone. A principal is never taken for a share of the same name.
        """
        if isinstance(context, dict):
            connection, principal = context["connection"], context["principal"]
        else:
            connection, principal = context.connection, context.principal
        if principal is not None:
            return ("principal", principal)
        share = self.server.share_of(connection)
        return None if share is None else ("share", share)

    def sessions_of(self, owner: Hashable) -> list[Session]:
        """List the running sessions of an owner, the oldest first."""
        return [
            session
            for session in self._sessions.values()
            if session.owner == owner and session.synchronizer is not None
        ]

    def session_of(self, owner: Hashable, name: str | None) -> Session:
        """Find a session of an owner; without a name the only one. Raises ToolError.

        One of somebody else does not exist. Being found counts as being used.
        """
        owned = self.sessions_of(owner)
        if name is None:
            if len(owned) != 1:
                raise ToolError(
                    "name the session: " + ", ".join(session.name for session in owned)
                    if owned
                    else "no session is running: call start_session first"
                )
            found = owned[0]
        else:
            by_name = {session.name: session for session in owned}
            if name not in by_name:
                raise ToolError(self.reply_for(f"{name}.") or f"there is no session {name[:80]!r}")
            found = by_name[name]
        self._used(found)
        return found

    async def start(self, owner: Hashable) -> Session:
        """Start a session. Raises ToolError when there are enough, or the app does not run."""
        self._check_room(owner)
        loop = asyncio.get_running_loop()
        name = f"s{next(self._numbers)}"
        app = self._launch(
            name=name,
            size=self._size,
            seen=lambda seen: self._seen(name, seen),
            ended=lambda error: self._ended(name, error),
        )
        session = Session(name, owner, app, loop.time())
        self._sessions[name] = session
        started = False
        try:
            await app.start()
            if self._sessions.get(name) is not session:  # as its owner is gone
                raise AppEnded("it ended while it was starting")
            self._serve(session)
            started = True
        except AppEnded:
            raise ToolError("the app did not start; why is in the log of the server") from None
        finally:
            if not started:  # cancelled as well
                self._discard(session, _STOPPED)
        return session

    async def stop(self, session: Session) -> bool:
        """Stop a session: its tools are gone at once. False: its app does not end, and was left."""
        # The app ends whether or not the caller waits for it.
        return await asyncio.shield(self._discard(session, _STOPPED))

    def reply_for(self, name: str) -> str | None:
        """Say what became of the session that a tool was of; None for what was never one."""
        session, dot, _ = name.partition(".")
        reason = self._over.get(session) if dot else None
        if reason is None:
            return None
        return (
            f"The session {session} has ended: {reason}. Its tools are gone with it; call "
            "start_session for a new one, whose tools have a new name, or list_sessions."
        )

    async def close(self) -> None:
        """Stop every session, and start none any more."""
        self._closed = True
        for leave in self._leave:
            leave()
        for session in list(self._sessions.values()):
            self._discard(session, _STOPPED)
        await asyncio.gather(*self._tasks)

    # -- life -----------------------------------------------------------------------------------

    def _check_room(self, owner: Hashable) -> None:
        if self._closed:
            raise ToolError("the server is stopping")
        if owner is None:
            raise ToolError("who asked for it went away")
        self._lingering = [app for app in self._lingering if not app.gone]
        if len(self._sessions) + len(self._lingering) >= self._max_sessions:
            raise ToolError(
                f"all {self._max_sessions} sessions are in use: stop one, or try again later"
            )
        owned = sum(session.owner == owner for session in self._sessions.values())
        if owned >= self._max_of_one:
            raise ToolError(f"you have {owned} sessions, the most that one may have: stop one")

    def _serve(self, session: Session) -> None:
        owner = session.owner
        session.synchronizer = Synchronizer(
            self.server,
            session=session.name,
            providers=session.app.providers,
            snapshot=lambda: session.seen.tree,
            model=lambda: session.seen.model,
            lenses=self.lenses,
            audience=lambda context: self.owner_of(context) == owner,
            question=self._question,
            before=lambda: self._used(session),
        )
        session.synchronizer.start()
        self._watch(session, self._idle_timeout)

    def _seen(self, name: str, seen: Seen) -> None:
        session = self._sessions.get(name)
        if session is not None:
            session.show(seen)

    def _ended(self, name: str, error: BaseException | None) -> None:
        """The app is over, by itself or because it was stopped."""
        session = self._sessions.get(name)
        if session is not None:
            self._discard(session, _ENDED if error is None else _CRASHED)

    def _gone(self, connection: Hashable) -> None:
        """A connection is gone: what it alone owned ends. Principals come back, and find theirs."""
        for session in list(self._sessions.values()):
            if session.owner == ("share", connection):
                self._discard(session, _LEFT)
        if self.lenses is not None:
            self.lenses.forget(connection)

    def _discard(self, session: Session, reason: str) -> asyncio.Task[bool]:
        """End a session for everybody now, and its app in a while; the task says whether it did."""
        if self._sessions.get(session.name) is session:
            del self._sessions[session.name]
            self._lingering.append(session.app)
            self._forget(session, reason)
        task = asyncio.get_running_loop().create_task(self._end(session))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _end(self, session: Session) -> bool:
        try:
            ended = await session.app.stop()
        except Exception:
            _logger.exception("session %s: its app cannot be stopped", session.name)
            ended = False
        if not ended:
            _logger.error(
                "session %s: its app does not end; it keeps its place until it does", session.name
            )
        return ended

    def _forget(self, session: Session, reason: str) -> None:
        if session.expiry is not None:
            session.expiry.cancel()
        if session.synchronizer is not None:
            session.synchronizer.stop()
            self._over[session.name] = reason
            while len(self._over) > MAX_REMEMBERED:
                del self._over[next(iter(self._over))]

    # -- the clock ------------------------------------------------------------------------------

    def _used(self, session: Session) -> None:
        session.used_at = asyncio.get_running_loop().time()

    def _watch(self, session: Session, after: float) -> None:
        loop = asyncio.get_running_loop()
        session.expiry = loop.call_later(after, self._look_at_clock, session)

    def _look_at_clock(self, session: Session) -> None:
        unused = asyncio.get_running_loop().time() - session.used_at
        if unused < self._idle_timeout:
            self._watch(session, self._idle_timeout - unused)
        else:
            minutes = self._idle_timeout / 60
            self._discard(session, f"nobody used it for {minutes:.4g} minutes")

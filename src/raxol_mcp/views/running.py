"""A running app, as sessions see it: whatever draws its view, and wherever it runs.

`textual_app` has one for Textual. Another toolkit needs this much, and sessions of it are served.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

from raxol_mcp.errors import ToolError
from raxol_mcp.views.tree import Node
from raxol_mcp.wire.values import Value

if TYPE_CHECKING:
    from raxol_mcp.views.walker import Provider

__all__ = ["AppEnded", "Launch", "Picture", "RunningApp", "Seen"]

Picture: TypeAlias = Literal["text", "svg", "png"]


class AppEnded(ToolError):
    """The app has ended, by itself or in a crash, and its session with it."""


class Seen(Value, frozen=True):
    """What there is to be seen of an app at one moment: its view, and the values it offers."""

    tree: Node
    model: Mapping[str, object] = {}


class RunningApp(Protocol):
    """An app from its start to its end, used from the loop of the server.

    It never blocks that loop, and calls `seen` and `ended` (see `Launch`) on it. `seen` is called
    before `start` or an action returns, when they changed what is to be seen.
    """

    @property
    def providers(self) -> Mapping[str, Provider]:
        """What its nodes offer, by type."""

    @property
    def gone(self) -> bool:
        """Whether nothing of it is left: no thread, no process."""

    async def start(self) -> None:
        """Start it and wait until there is something to be seen. Raises AppEnded."""

    async def stop(self) -> bool:
        """End it; False when something of it does not end and was left alone.

        `ended` is called when the app is over, which may be before, or never.
        """

    async def press(self, keys: Sequence[str]) -> str:
        """Press keys; return what there is to say about it. Raises ToolError."""

    async def picture(self, form: Picture) -> str | bytes:
        """Draw its screen. Raises ToolError."""


class Launch(Protocol):
    """Makes a running app, which is not started yet."""

    def __call__(
        self,
        *,
        name: str,
        size: tuple[int, int],
        seen: Callable[[Seen], None],
        ended: Callable[[BaseException | None], None],
    ) -> RunningApp:
        """Make the app of session `name`; `size` is columns and rows."""

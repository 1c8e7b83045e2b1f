"""A Textual app's screen as text, as SVG and as a picture.

What is on it is what a terminal would show; a password is dots, also that of a `MaskedInput`, which
Textual draws in the clear.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Final

from rich.console import Console
from rich.segment import Segment
from textual.strip import Strip
from textual.widgets import MaskedInput

from raxol_mcp.errors import ToolError
from raxol_mcp.views.textual_kinds import sendable

if TYPE_CHECKING:
    from textual.app import App

__all__ = ["as_png", "as_svg", "as_text"]

_DOTS: Final = "\N{BULLET}" * 8  # however long it is


def as_text(app: App[object]) -> str:
    """Draw the screen as lines of text, without the spaces at their ends."""
    width, height = app.size
    console = Console(
        width=width, height=height, file=io.StringIO(), record=True, legacy_windows=False
    )
    # As `App.export_screenshot` does it, which gives SVG alone.
    with _covered(app):
        console.print(
            app.screen._compositor.render_update(full=True, screen_stack=app._background_screens)
        )
    lines = console.export_text(styles=False).splitlines()
    return sendable("\n".join(line.rstrip() for line in lines).rstrip("\n"))


def as_svg(app: App[object]) -> str:
    """Draw the screen as SVG."""
    with _covered(app):
        return sendable(app.export_screenshot())


@contextmanager
def _covered(app: App[object]) -> Iterator[None]:
    """Draw dots for the passwords that Textual draws as they are, while this lasts."""
    secrets = [
        widget
        for screen in app.screen_stack
        for widget in screen.query(MaskedInput)
        if widget.password and widget.value
    ]
    try:
        for widget in secrets:
            vars(widget)["render_line"] = _dots
            widget._styles_cache.clear()
        yield
    finally:
        for widget in secrets:
            vars(widget).pop("render_line", None)
            widget._styles_cache.clear()


def _dots(_y: int) -> Strip:
    return Strip([Segment(_DOTS)])


def as_png(svg: str) -> bytes:
    """Turn the SVG of a screen into PNG. Raises ToolError where nothing can: it is not required.

    CPU work: not for an event loop.
    """
    try:
        cairosvg = import_module("cairosvg")
    except (ImportError, OSError):  # OSError: the package is there, and the C library is not
        raise ToolError(
            "no PNG here: it needs the package cairosvg; ask for svg, text or json"
        ) from None
    picture = cairosvg.svg2png(bytestring=svg.encode())
    assert isinstance(picture, bytes), "without a file it returns what it wrote"
    return picture

"""A Textual app's screen as text, as SVG and as a picture.

What is on it is what a terminal would show; a password is the dots that it is there.
"""

from __future__ import annotations

import io
from importlib import import_module
from typing import TYPE_CHECKING

from rich.console import Console

from raxol_mcp.errors import ToolError
from raxol_mcp.views.textual_kinds import sendable

if TYPE_CHECKING:
    from textual.app import App

__all__ = ["as_png", "as_svg", "as_text"]


def as_text(app: App[object]) -> str:
    """Draw the screen as lines of text, without the spaces at their ends."""
    width, height = app.size
    console = Console(
        width=width, height=height, file=io.StringIO(), record=True, legacy_windows=False
    )
    # As `App.export_screenshot` does it, which gives SVG alone.
    console.print(
        app.screen._compositor.render_update(full=True, screen_stack=app._background_screens)
    )
    lines = console.export_text(styles=False).splitlines()
    return sendable("\n".join(line.rstrip() for line in lines).rstrip("\n"))


def as_svg(app: App[object]) -> str:
    """Draw the screen as SVG."""
    return sendable(app.export_screenshot())


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

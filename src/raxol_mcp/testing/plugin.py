"""The pytest plugin: a fixture that opens apps and closes them when the test is over.

Loaded by pytest wherever raxol-mcp is installed, so it imports nothing before it is used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from raxol_mcp.testing.views import AppView

__all__ = ["app_view"]


@pytest.fixture
def app_view() -> Iterator[Callable[..., AppView]]:
    """Open apps: `app_view(MyApp)` is an `AppView` of a new session of it."""
    from raxol_mcp.testing.views import AppView

    with ExitStack() as opened:
        yield lambda make_app, **options: opened.enter_context(AppView(make_app, **options))

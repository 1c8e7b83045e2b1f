"""What the command line is given by whoever runs it: how a process ends, how a client is made."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from raxol_mcp.wire.values import Value

if TYPE_CHECKING:
    from raxol_mcp.cli.serving import EndProcess
    from raxol_mcp.client.app import Client

__all__ = ["Surroundings"]


class Surroundings(Value, frozen=True, kw_only=True):
    """None stands for the real thing: a process that ends by itself, a `Client`.

    `client_factory` takes what `Client` takes.
    """

    end_process: EndProcess | None = None
    client_factory: Callable[..., Client] | None = None

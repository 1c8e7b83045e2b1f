"""The list of events is the truth about what the core records."""

from __future__ import annotations

import ast
from pathlib import Path

import raxol_mcp
from raxol_mcp.telemetry import EVENTS

PACKAGE = Path(raxol_mcp.__file__).parent


def recorded() -> dict[str, set[str]]:
    """Read every `record("event", field=...)` of the cores, and `noticed("event", {...})`."""
    found: dict[str, set[str]] = {}
    sources = [*PACKAGE.glob("core/*.py"), *PACKAGE.glob("transports/**/*.py")]
    for path in sorted(sources):
        for node in ast.walk(ast.parse(path.read_text())):
            match node:
                case ast.Call(
                    func=ast.Attribute(attr="noticed"),
                    args=[ast.Constant(str(event)), ast.Dict(keys=keys)],
                ):
                    names = {str(key.value) for key in keys if isinstance(key, ast.Constant)}
                    found.setdefault(event, set()).update(names)
                case ast.Call(
                    func=ast.Attribute(attr="record"), args=[ast.Constant(str(event))], keywords=ks
                ):
                    found.setdefault(event, set()).update(str(k.arg) for k in ks)
                case _:
                    pass
    return found


def test_every_event_and_field_is_listed_and_no_other() -> None:
    """ours: a name that is not written down cannot be relied on."""
    assert recorded() == {event: set(fields) for event, fields in EVENTS.items()}

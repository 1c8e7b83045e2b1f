"""Keys by name, as the events that a terminal would send for them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from textual.events import Key
from textual.keys import (
    KEY_ALIASES,
    REPLACED_KEYS,
    Keys,
    _character_to_key,  # there is no public name for it
    key_to_character,
)

from raxol_mcp.errors import ToolError

__all__ = ["key_events"]

_NAMED: Final = {key.value for key in Keys} | set(KEY_ALIASES) | {"enter", "space"}
_MODIFIERS: Final = {"ctrl", "shift", "alt", "meta", "super", "hyper"}
# What a terminal sends with keys that are no characters to be seen.
_CHARACTERS: Final = {"enter": "\r", "tab": "\t", "space": " ", "escape": "\x1b"}
_WHITE: Final = {"\r": "enter", "\n": "enter", "\t": "tab", " ": "space"}


def key_events(keys: Iterable[str]) -> list[Key]:
    """Write keys as events: single characters, or Textual's names such as "enter" and "ctrl+s".

    Raises ToolError for what is neither.
    """
    return [_event(key) for key in keys]


def _event(key: str) -> Key:
    if len(key) == 1:
        named = _WHITE.get(key)
        return Key(_character_to_key(key), key) if named is None else Key(named, _CHARACTERS[named])
    before, _, last = key.rpartition("+")
    modifiers = before.split("+") if before else []
    if not last or not set(modifiers) <= _MODIFIERS:
        raise _no_key(key)
    name = _character_to_key(last) if len(last) == 1 else last
    whole = "+".join([*modifiers, name])
    character = _CHARACTERS.get(name)
    if character is None:
        character = key_to_character(REPLACED_KEYS.get(name, name))
    if character is None and name not in _NAMED and whole not in _NAMED:
        raise _no_key(key)
    return Key(whole, None if set(modifiers) - {"shift"} else character)


def _no_key(key: str) -> ToolError:
    return ToolError(
        f"{key[:40]!r} is not a key: write one character, or a name such as enter, escape, tab, "
        "space, backspace, delete, up, pagedown, f1, ctrl+s, shift+tab"
    )

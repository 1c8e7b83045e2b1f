"""What is wrong with a value, said in one sentence that a model or a person can act on.

Not the check itself: that is msgspec's or a JSON Schema validator's. Values are never repeated,
since they may be secrets and may be long; names of arguments are, cut to a readable length.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final, TypeAlias

__all__ = ["Problem", "quoted", "reworded", "sentence"]

# Said already, or where it is and what is wrong there: only those that are told are put into words.
Problem: TypeAlias = str | tuple[Sequence[str | int], str]

# Ours: a caller can send a hundred thousand wrong names; nobody reads more than these.
_MAX_PROBLEMS: Final = 20
_MAX_NAME: Final = 64
_MAX_MESSAGE: Final = 300

# Compiled at the first failure: a server that starts has none.
_EXPECTED: Final = r"(?s)Expected `([^`]+)`(?:, got `([^`]+)`)?(.*)"
_PLACE: Final = r"(?s) - at (`key` in )?`\$(.*)`$"
_FIELD: Final = r"(?s)Object (missing required|contains unknown) field `(.*)`"

# msgspec speaks of Python, the caller of JSON.
_JSON_NAMES: Final = {"int": "integer", "str": "string", "float": "number", "bool": "boolean"}


def sentence(problems: Sequence[Problem], *, noun: str = "arguments") -> str:
    """Join the problems, of which there is at least one."""
    named = [
        problem if isinstance(problem, str) else f"{quoted(problem[0])} {problem[1]}"
        for problem in problems[:_MAX_PROBLEMS]
    ]
    if len(problems) > _MAX_PROBLEMS:
        named.append(f"and {len(problems) - _MAX_PROBLEMS} more")
    return f"Invalid {noun}: {'; '.join(named)}."


def quoted(names: Iterable[str | int]) -> str:
    """Write a path into the arguments, `'a.b[0]'`; cut when it is long, on one line always."""
    path = ""
    for name in names:
        path += f"[{name}]" if isinstance(name, int) else f".{name}" if path else name
    if not path.isprintable():
        path = ascii(path)[1:-1]
    return f"'{path if len(path) <= _MAX_NAME else path[: _MAX_NAME - 1] + '…'}'"


def reworded(message: str, name: str, *, allowed: object = None) -> str:
    """Turn a complaint of msgspec about one argument into a problem for the caller.

    `allowed` is the list of values that the argument itself may have, if it is one of a list.
    """
    subject = name
    if match := re.search(_PLACE, message):
        message = message[: match.start()]
        subject = (subject + match[2]).removeprefix(".")
        if match[1]:
            return f"a name in {quoted([subject])} {_complaint(message)}"
    elif message.startswith("Invalid enum value") and isinstance(allowed, list):
        return f"{quoted([subject])} {_choice(allowed)}"
    if match := re.fullmatch(_FIELD, message):
        inner = quoted([*filter(None, [subject]), match[2]])
        return f"{inner} is {'required' if match[1].startswith('m') else 'unknown'}"
    return f"{quoted([subject]) if subject else 'the value'} {_complaint(message)}"


def _complaint(message: str) -> str:
    if match := re.fullmatch(_EXPECTED, message):
        wanted = " or ".join(_JSON_NAMES.get(name, name) for name in match[1].split(" | "))
        found = match[2]
        rest = f", not {_JSON_NAMES.get(found, found)}" if found else match[3]
        return f"must be {wanted}{rest}"
    if message.startswith(("Invalid enum value", "Invalid value")):
        return "is not one of the allowed values"
    if message.startswith("Invalid "):
        return f"is no valid {message.removeprefix('Invalid ')}"
    short = message if len(message) <= _MAX_MESSAGE else message[: _MAX_MESSAGE - 1] + "…"
    return f"is not valid ({' '.join(short.split())})"


def _choice(allowed: list[object]) -> str:
    shown = ", ".join("null" if value is None else repr(value) for value in allowed[:_MAX_PROBLEMS])
    return f"must be one of {shown}{', …' if len(allowed) > _MAX_PROBLEMS else ''}"

"""The checks of a client's options, one for each: what may stand there, and what it becomes.

Not the options' meaning: `raxol_mcp.client.spec` documents them. No sentence repeats a value that
may be a secret.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Final, TypeGuard

from raxol_mcp.client.redaction import MASK, shown
from raxol_mcp.wire.values import is_number

__all__ = ["READERS", "WrongOption", "judge_target", "unknown_options"]

_MAX_NAME: Final = 128
_MAX_ITEMS: Final = 4096  # arguments, variables, headers: more than any system takes
_TOKEN: Final = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")  # RFC 9110 §5.6.2
# RFC 9110 §5.5: a line break in a value would be another header.
_BREAKING: Final = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
_LONGEST: Final = 1e9  # thirty years; a larger one would be infinite for some timers
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")

_STDIO_ONLY: Final = ("args", "env", "cwd", "inherit_env", "drop_env")
_HTTP_ONLY: Final = ("headers", "chunk_timeout", "connect_timeout", "allow_private")


class WrongOption(Exception):
    """What is wrong with an option, in one sentence without its value if that may be secret."""


def judge_target(given: Mapping[str, object]) -> None:
    """Check that there is one target, and that the other options belong to it.

    `given` has no option that is as by default. Raises `WrongOption`.
    """
    command, url = given.get("command"), given.get("url")
    if command is not None and url is not None:
        raise WrongOption("command and url are both given: keep the one that is meant")
    if command is None and url is None:
        raise WrongOption(
            "neither command nor url is given: name the program to start, or the address"
        )
    foreign = _STDIO_ONLY if command is None else _HTTP_ONLY
    for name in foreign:
        if name in given:
            target, other = ("url", "command") if command is None else ("command", "url")
            raise WrongOption(
                f"{name} has no meaning with {target}, only with {other}: leave it out"
            )


def unknown_options(names: Sequence[object]) -> str:
    """Say which options do not exist, and which were probably meant."""
    from difflib import get_close_matches  # only for who mistyped

    said = []
    for name in names[:8]:
        # What is no name at all may be anything, such as a header written as one text.
        known = isinstance(name, str) and name.isidentifier()
        near = get_close_matches(str(name)[:64], READERS, 1) if known else []
        meant = f" (did you mean {near[0]}?)" if near else ""
        said.append(f"{shown(name) if known else MASK}{meant}")
    more = f" and {len(names) - 8} more" if len(names) > 8 else ""
    return f"unknown option{'s' if len(names) > 1 else ''} {', '.join(said)}{more}"


def _name(name: str, value: object) -> str:
    if value is None:
        raise WrongOption("name is missing: give the server a name")
    if not isinstance(value, str) or not value.strip():
        raise WrongOption("name must be a text that is not empty")
    if len(value) > _MAX_NAME or not value.isprintable():
        raise WrongOption(f"name must have at most {_MAX_NAME} characters, all of them printable")
    return value


def _target(name: str, value: object) -> str | None:
    if value is None:
        return None
    if not isinstance(value, str) or not value.strip():
        raise WrongOption(f"{name} must be a text that is not empty")
    # A URL is judged when it is dialled; but what no system can start is refused here.
    if name == "command" and (_CONTROL.search(value) or not _storable(value)):
        raise WrongOption("command must be without control characters")
    return value


def _texts(name: str, value: object) -> tuple[str, ...]:
    # A text is a sequence too, of its letters.
    if value is None:
        return ()
    if isinstance(value, str | bytes | Mapping) or not isinstance(value, Sequence):
        raise WrongOption(f"{name} must be a list of texts")
    if len(value) > _MAX_ITEMS:
        raise WrongOption(f"{name} must have at most {_MAX_ITEMS} items")
    for index, item in enumerate(value):
        if not isinstance(item, str):
            raise WrongOption(f"{name}[{index}] must be a text, not {type(item).__name__}")
        if not _storable(item):
            raise WrongOption(f"{name}[{index}] must be a text without NUL and lone surrogates")
    return tuple(value)


def _pairs(name: str, value: object) -> tuple[tuple[str, str], ...]:
    if value is None:
        return ()
    items = value.items() if isinstance(value, Mapping) else value
    if isinstance(items, str | bytes) or not isinstance(items, Iterable):
        raise WrongOption(f"{name} must be a mapping of texts to texts, or a list of pairs")
    pairs: list[tuple[str, str]] = []
    for pair in items:
        if len(pairs) == _MAX_ITEMS:
            raise WrongOption(f"{name} must have at most {_MAX_ITEMS} items")
        if not isinstance(pair, list | tuple) or len(pair) != 2:
            raise WrongOption(f"{name} must be a mapping of texts to texts, or a list of pairs")
        pairs.append((_header if name == "headers" else _variable)(*pair))
    # Which of two would count is not to be guessed. Names of headers are compared without case.
    taken: set[str] = set()
    for key, _ in pairs:
        same = key.lower() if name == "headers" else key
        if same in taken:
            raise WrongOption(f"{shown(key)} is in {name} twice: keep the one that is meant")
        taken.add(same)
    return tuple(pairs)


def _header(name: object, value: object) -> tuple[str, str]:
    if not isinstance(name, str) or not _TOKEN.fullmatch(name):
        raise WrongOption("a name in headers is not the name of a header (RFC 9110)")
    if not isinstance(value, str):
        raise WrongOption(f"the header {shown(name)} must have a text, not {type(value).__name__}")
    if _BREAKING.search(value) or not _encodable(value):
        raise WrongOption(
            f"the header {shown(name)} has a line break or a control character in its value: "
            "strip it"
        )
    return name, value


def _variable(name: object, value: object) -> tuple[str, str]:
    if not isinstance(name, str) or not name or "=" in name or not _storable(name):
        raise WrongOption("a name in env is not the name of a variable")
    if not isinstance(value, str):
        raise WrongOption(
            f"the variable {shown(name)} must have a text, not {type(value).__name__}"
        )
    if not _storable(value):
        raise WrongOption(f"the variable {shown(name)} must be without NUL and lone surrogates")
    return name, value


def _directory(name: str, value: object) -> str | None:
    path = os.fspath(value) if isinstance(value, os.PathLike) else value
    if path is None:
        return None
    if not isinstance(path, str) or not path or not _storable(path):
        raise WrongOption(f"{name} must be the path of a directory")
    return path


def _seconds(name: str, value: object) -> float:
    if not is_number(value) or not 0 < value <= _LONGEST:  # NaN is not either
        raise WrongOption(f"{name} must be seconds above 0, not {shown(value)}")
    return float(value)


def _seconds_or_never(name: str, value: object) -> float:
    if not is_number(value) or not 0 <= value <= _LONGEST:
        raise WrongOption(f"{name} must be seconds, 0 or more, not {shown(value)}")
    return float(value)


def _positive(name: str, value: object) -> int:
    if not _is_count(value) or value < 1:
        raise WrongOption(f"{name} must be a whole number from 1 on, not {shown(value)}")
    return value


def _count(name: str, value: object) -> int:
    if not _is_count(value) or value < 0:
        raise WrongOption(f"{name} must be a whole number from 0 on, not {shown(value)}")
    return value


def _flag(name: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise WrongOption(f"{name} must be True or False, not {shown(value)}")
    return value


def _metered(name: str, value: object) -> bool | None:
    return None if value is None else _flag(name, value)


def _choice(*allowed: str) -> Callable[[str, object], str | None]:
    def read(name: str, value: object) -> str | None:
        if value is None or (isinstance(value, str) and value in allowed):
            return value
        raise WrongOption(f"{name} must be one of {', '.join(allowed)}, not {shown(value)}")

    return read


def _prices(name: str, value: object) -> Mapping[str, object]:
    if value is None:
        return MappingProxyType({})
    if not isinstance(value, Mapping) or not all(isinstance(tool, str) for tool in value):
        raise WrongOption(f"{name} must map names of tools to positive integers")
    return MappingProxyType(dict(value))


def _is_count(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)


def _encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _storable(text: str) -> bool:
    """Say whether a system takes a text as an argument, a variable or a path."""
    try:
        # Bytes that are no UTF-8 are lone surrogates in Python, and come back as those bytes.
        return b"\0" not in text.encode(errors="surrogateescape")
    except UnicodeEncodeError:
        return False


READERS: Final[Mapping[str, Callable[[str, object], object]]] = {
    "name": _name,
    "command": _target,
    "args": _texts,
    "env": _pairs,
    "cwd": _directory,
    "inherit_env": _flag,
    "drop_env": _texts,
    "url": _target,
    "headers": _pairs,
    "allow_private": _flag,
    "era": _choice("handshake", "stateless"),
    "era_ttl": _seconds_or_never,
    "concurrency": _choice("stateless", "pooled", "serialized"),
    "pool_size": _positive,
    "queue_limit": _count,
    "metered": _metered,
    "prices": _prices,
    "call_timeout": _seconds,
    "init_timeout": _seconds,
    "probe_timeout": _seconds,
    "answer_timeout": _seconds,
    "connect_timeout": _seconds,
    "chunk_timeout": _seconds,
    "reconnect": _seconds,
    "fail_fast": _flag,
    "max_message_bytes": _positive,
}

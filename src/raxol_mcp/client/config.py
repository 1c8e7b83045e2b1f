"""`.mcp.json`: a file that names servers, read and judged, and nothing more.

Starts nothing, contacts nobody and reads no variable: a file found in a folder may be anybody's,
so there is no way from here to a spec. `raxol_mcp.client.trust` opens it, once the user has
allowed this very content.

The forms in use, `{"mcpServers": {...}}` and `{"servers": {...}}` (VS Code), are read alike; a
file may have both. A server is `{"command", "args", "env", "cwd"}` or `{"url", "headers"}`, with
`type` where it says the same, and with the options of `ClientSpec` beside them, spelt as there.
What other programs keep in such a file is ignored by name. Comments are refused: what a file says
must not depend on who reads it, and for the same reason a repeated member is.

A wrong entry is left out, with its reason, and the others stay.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator, Mapping
from hashlib import sha256
from typing import Final, Literal

from raxol_mcp.client.names import tool_name
from raxol_mcp.client.redaction import escaped, shown
from raxol_mcp.client.spec_checks import READERS
from raxol_mcp.client.variables import BadReference, names_in, parts_of
from raxol_mcp.errors import ConfigurationError
from raxol_mcp.wire.strict import Malformed, parse
from raxol_mcp.wire.values import Value

__all__ = [
    "MAX_FILE_BYTES",
    "MAX_SERVERS",
    "OPTIONS",
    "REACH",
    "Config",
    "Declaration",
    "Problem",
    "load",
    "normalised",
]

MAX_FILE_BYTES: Final = 1024 * 1024
MAX_SERVERS: Final = 64
_MAX_DEPTH: Final = 32
REACH: Final = ("command", "args", "env", "cwd", "url", "headers")
"""How to reach a server: the members whose texts may refer to variables."""
# What a file may say of a server besides how to reach it: the options of `ClientSpec` that are
# plain values. They are not expanded.
OPTIONS: Final = frozenset(READERS) - {"name", *REACH}

_FORMS: Final = ("mcpServers", "servers")
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}", re.ASCII)
_TYPES: Final[Mapping[str, Literal["stdio", "http"]]] = {
    "stdio": "stdio",
    "http": "http",
    "streamable-http": "http",
    "streamableHttp": "http",
    "sse": "http",
}
_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"
_COMMENT: Final = re.compile(rb"^\s*(?://|/\*)|,\s*[}\]]", re.MULTILINE)


class Problem(Value, frozen=True):
    """A server that was left out, and why. `name` is escaped; None speaks of the whole file."""

    name: str | None
    text: str
    tag: str = "invalid_spec"


class Declaration(Value, frozen=True):
    """A server as its file declares it: nothing is expanded.

    `options` are those of `ClientSpec`, `unknown` the members that are ignored. The `repr` shows
    no option: they may hold credentials.
    """

    name: str
    kind: Literal["stdio", "http"]
    options: Mapping[str, object]
    unknown: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"Declaration({self.name!r}, {self.kind!r})"

    @property
    def variables(self) -> list[str]:
        """Every variable that would be read, sorted."""
        return sorted({name for text in _texts(self.options) for name in names_in(text)})


class Config(Value, frozen=True):
    """A file that was read once: what it says, and what its bytes were.

    `path` is absolute and has no links in it. `digest` is the SHA-256 of the bytes that were
    parsed, in hexadecimal digits. `owner` and `mode` are those of the file they came from.
    """

    path: str
    digest: str
    entries: tuple[Declaration, ...]
    problems: tuple[Problem, ...]
    owner: int
    mode: int

    @property
    def folder(self) -> str:
        """Where the file lies; relative paths in it start here."""
        return os.path.dirname(self.path)

    def entry(self, name: str) -> Declaration:
        """Give one server. Raises `KeyError` that says which there are."""
        for declaration in self.entries:
            if declaration.name == name:
                return declaration
        known = ", ".join(declaration.name for declaration in self.entries) or "none"
        raise KeyError(f"{self.path!a} has no server {shown(name)}; it has: {known}")


def load(path: str | os.PathLike[str]) -> Config:
    """Read a file.

    Raises `ConfigurationError` for a file that cannot be read as a whole: missing, no plain file,
    larger than 1 MiB, not UTF-8, not JSON, no object.
    """
    place, content, found = _content(os.fspath(path))
    entries, problems = _declarations(_members(content, place))
    return Config(
        place, sha256(content).hexdigest(), entries, problems, found.st_uid, found.st_mode
    )


def normalised(name: str) -> str:
    """Write the name of a server as the names of its tools have it: two that agree collide."""
    return tool_name(name, "")


# -- the file


def _content(path: str) -> tuple[str, bytes, os.stat_result]:
    """Find and read a file once: nothing is judged but the bytes returned here."""
    try:
        place = os.path.realpath(path, strict=True)
        place.encode()
        # No link is left, and none that was put there since is followed: `place` is what the
        # user allows. Opening a pipe must not wait for its writer.
        descriptor = os.open(place, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW)
        try:
            found = os.fstat(descriptor)
            if not stat.S_ISREG(found.st_mode):
                raise ConfigurationError(f"{place!a} is not a plain file")
            with open(descriptor, "rb", closefd=False) as file:
                content = file.read(MAX_FILE_BYTES + 1)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise ConfigurationError(f"{path!a} cannot be read: {error.strerror}") from None
    except ValueError:  # a NUL, or bytes that are no UTF-8
        raise ConfigurationError(f"{path!a} is no path that can be written down") from None
    if len(content) > MAX_FILE_BYTES:
        raise ConfigurationError(f"{place!a} is larger than {MAX_FILE_BYTES} bytes")
    return place, content, found


def _members(content: bytes, place: str) -> dict[str, object]:
    text = content.removeprefix(_BYTE_ORDER_MARK)
    try:
        value = parse(text, max_depth=_MAX_DEPTH)
    except Malformed as error:
        more = (
            "; comments and a comma behind the last member have to go: this file is JSON"
            if _COMMENT.search(text)
            else ""
        )
        raise ConfigurationError(
            f"{place!a} cannot be understood: {escaped(str(error))}{more}"
        ) from None
    if not isinstance(value, dict):
        raise ConfigurationError(f"{place!a} must hold an object")
    for form in _FORMS:
        if not isinstance(value.get(form, {}), dict):
            raise ConfigurationError(f'"{form}" in {place!a} must be an object')
    return value


# -- its servers


def _declarations(
    members: Mapping[str, object],
) -> tuple[tuple[Declaration, ...], tuple[Problem, ...]]:
    entries: dict[str, Declaration] = {}  # by normalised name
    problems = []
    if not any(form in members for form in _FORMS):
        problems.append(Problem(None, 'it has neither "mcpServers" nor "servers"'))
    for name, value in _named(members):
        try:
            declaration = _declaration(name, value)
            first = entries.get(normalised(name))
            if first is not None:
                raise _Wrong(f"its tools would have the names of those of {first.name}")
            if len(entries) == MAX_SERVERS:
                raise _Wrong(f"a file may name {MAX_SERVERS} servers at most")
        except _Wrong as wrong:
            problems.append(Problem(escaped(name), str(wrong), wrong.tag))
        else:
            entries[normalised(name)] = declaration
    return tuple(entries.values()), tuple(problems)


def _named(members: Mapping[str, object]) -> Iterator[tuple[str, object]]:
    for form in _FORMS:
        servers = members.get(form)
        if isinstance(servers, dict):
            yield from servers.items()


class _Wrong(Exception):
    """Why a server is left out."""

    def __init__(self, text: str, tag: str = "invalid_spec") -> None:
        super().__init__(text)
        self.tag = tag


def _declaration(name: str, value: object) -> Declaration:
    if not _NAME.fullmatch(name):
        raise _Wrong("a name has 1 to 64 of A-Z a-z 0-9 _ . - and begins with a letter or a digit")
    if not isinstance(value, dict):
        raise _Wrong("it must be an object")
    _refuse_disabled(value)
    kind = _kind(value)
    options: dict[str, object] = {
        key: _CHECKS[key](key, value[key]) for key in REACH if value.get(key) is not None
    }
    options |= {key: value[key] for key in sorted(OPTIONS & value.keys())}
    for text in _texts(options):
        try:
            parts_of(text)
        except BadReference as error:
            raise _Wrong(str(error)) from None
    known = {*REACH, *OPTIONS, "type", "disabled", "enabled"}
    unknown = tuple(escaped(key) for key in value if key not in known)
    return Declaration(name, kind, options, unknown)


def _refuse_disabled(value: Mapping[str, object]) -> None:
    for key, off in (("disabled", True), ("enabled", False)):
        given = value.get(key, not off)
        if not isinstance(given, bool):
            raise _Wrong(f'"{key}" must be true or false')
        if given is off:
            raise _Wrong("it is disabled in the file", "disabled")
    if value.get("envFile") is not None:
        # Ignored, the server would run without what it needs, or with what should be replaced.
        raise _Wrong('"envFile" is not read here; name the variables in "env"')


def _kind(value: Mapping[str, object]) -> Literal["stdio", "http"]:
    command, url = (value.get(key) is not None for key in ("command", "url"))
    if command and url:
        raise _Wrong('it has both "command" and "url"')
    if not command and not url:
        raise _Wrong('it needs a "command" or a "url"')
    kind: Literal["stdio", "http"] = "stdio" if command else "http"
    said = value.get("type", kind)
    if not isinstance(said, str) or said not in _TYPES:
        raise _Wrong(f'"type" must be one of {", ".join(_TYPES)}')
    if _TYPES[said] != kind:
        raise _Wrong(f'"type" says {said}, which needs a "{"url" if command else "command"}"')
    return kind


def _text(key: str, value: object) -> str:
    if not isinstance(value, str) or not value:
        raise _Wrong(f'"{key}" must be a string, and not an empty one')
    return value


def _list(key: str, value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise _Wrong(f'"{key}" must be a list of strings')
    return tuple(value)


def _pairs(key: str, value: object) -> dict[str, str]:
    if not isinstance(value, dict):
        raise _Wrong(f'"{key}" must be an object')
    pairs = {}
    for name, item in value.items():
        # A port is often written as a number, and there is one way to write an integer.
        if isinstance(item, int) and not isinstance(item, bool) and key == "env":
            pairs[name] = str(item)
        elif isinstance(item, str):
            pairs[name] = item
        else:
            raise _Wrong(f'{shown(name)} in "{key}" must be a string')
    return pairs


_CHECKS: Final = {
    "command": _text,
    "args": _list,
    "env": _pairs,
    "cwd": _text,
    "url": _text,
    "headers": _pairs,
}


def _texts(options: Mapping[str, object]) -> Iterator[str]:
    """Give every string of a server in which references count: never a name, never an option."""
    for key in REACH:
        match options.get(key):
            case str() as text:
                yield text
            case tuple() as several:
                yield from several
            case dict() as pairs:
                yield from pairs.values()
            case _:
                pass  # the server has no such option

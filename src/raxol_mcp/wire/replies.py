"""What a client makes of one line of a server, so that a broken answer still ends its call.

Not a second decoder: what `raxol_mcp.wire.jsonrpc` reads is what it reads. This module says what
to do with the rest. A server prints banners and logs where only messages belong, and now and
then it writes an answer that cannot be read. The first is dropped; of the second the id is found
where it is beyond doubt, because otherwise somebody waits for an answer that has already come.

| line | becomes |
|---|---|
| a message, a batch | itself |
| a request with something wrong, whose id is known | `Invalid`: that one is owed an answer |
| an answer that cannot be read, whose id is known | `UnreadableReply` |
| anything else: no JSON, a blank line, a scalar, an object of some log | `Ignored` |

Nothing else is answered, least of all what is no JSON: a server that logs to its stdout would
be sent an error for every line of its log.
"""

from __future__ import annotations

import re
from typing import Final

import msgspec

from raxol_mcp.errors import INVALID_REQUEST, PARSE_ERROR
from raxol_mcp.wire.jsonrpc import (
    MAX_DEPTH,
    Failure,
    Ignored,
    Incoming,
    Invalid,
    RequestId,
    classify,
)
from raxol_mcp.wire.strict import INT64_MAX, INT64_MIN, Malformed, parse

__all__ = ["MAX_TOKENS", "UnreadableReply", "decode_reply"]

# Finding an id in a broken text is a courtesy to the caller; this bounds what it costs, to some
# tens of milliseconds. A string counts as one however long it is, and so do brackets in a row.
MAX_TOKENS: Final = 200_000


class UnreadableReply(msgspec.Struct, frozen=True):
    """An answer that has come and cannot be used. `why` may hold text of the peer, unescaped."""

    id: RequestId
    why: str


_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"
_WHITESPACE: Final = b" \t\r\n"  # RFC 8259 §2, and no other

_OUTCOMES: Final = frozenset({"result", "error"})
_OF_A_REPLY: Final = _OUTCOMES | {"jsonrpc", "id"}
_OF_A_REQUEST: Final = frozenset({"jsonrpc", "id", "method", "params"})
# The members whose values say what an object is.
_TELLING: Final = frozenset({"jsonrpc", "id", "method"})

# Possessive throughout: whatever the text, each byte is looked at a bounded number of times.
_STRING: Final = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
_BLANKS: Final = rb"[ \t\r\n]*+"
_START: Final = re.compile(_BLANKS + rb"\{")
_NAME: Final = re.compile(_BLANKS + rb"(" + _STRING + rb")" + _BLANKS + rb":" + _BLANKS, re.DOTALL)
_SCALAR: Final = re.compile(_STRING + rb'|[^\x00-\x20,:{}\[\]"]++', re.DOTALL)
_SEPARATOR: Final = re.compile(_BLANKS + rb"([,}])")
_END: Final = re.compile(_BLANKS + rb"\Z")
# All that matters below the outermost object. A quote alone begins a string that never ends.
_NESTED: Final = re.compile(_STRING + rb'|[\[{]++|[\]}]++|"', re.DOTALL)
_OPENING: Final = b"[{"
_QUOTE: Final = b'"'

_UNREAD: Final = object()  # in place of a value that says nothing here


def decode_reply(line: bytes, *, max_depth: int = MAX_DEPTH) -> Incoming | UnreadableReply:
    """Read one line of a server; never raises.

    A byte order mark in front and whitespace around are skipped. What the rules of
    `raxol_mcp.wire.jsonrpc.decode` refuse is sorted as the table above says.
    """
    if line[:1] != b"{":
        line = line.removeprefix(_BYTE_ORDER_MARK).strip(_WHITESPACE)
        if not line:
            return Ignored("blank line")
    try:
        value = parse(line, max_depth=max_depth, wide=True)
    except Malformed as error:
        why = str(error)
        return _sorted(_members(line), PARSE_ERROR, f"Parse error: {why}", why)
    message = classify(value)
    if isinstance(message, Invalid):
        code, why = message.failure.code, message.failure.message
    elif isinstance(message, Ignored):
        code, why = INVALID_REQUEST, message.reason
    else:
        return message
    members = list(value.items()) if isinstance(value, dict) else []
    return _sorted(members, code, why, why)


def _sorted(
    members: list[tuple[str, object]], code: int, answer: str, why: str
) -> Invalid | Ignored | UnreadableReply:
    """Say what is no message by its outermost members, of which some may come twice.

    `code` and `answer` go to the peer if it turns out to be a request.
    """
    ids = [value for name, value in members if name == "id"]
    id = _usable(ids[0]) if len(ids) == 1 else None
    if id is None:
        return Ignored(why)
    names = {name for name, _ in members}
    versions = [value for name, value in members if name == "jsonrpc"]
    # A log is full of objects with an `id` and a `method` or an `error`. One that does not call
    # itself JSON-RPC is taken for it only if it has nothing beside the members of such a message.
    named = bool(versions) and all(version == "2.0" for version in versions)
    if any(name == "method" and value is not None for name, value in members):
        return (
            Invalid(Failure(id, code, answer)) if named or names <= _OF_A_REQUEST else Ignored(why)
        )
    if names.isdisjoint(_OUTCOMES):
        # JavaScript leaves out what is `undefined`.
        return UnreadableReply(id, "neither a result nor an error") if named else Ignored(why)
    return UnreadableReply(id, why) if named or names <= _OF_A_REPLY else Ignored(why)


def _usable(value: object) -> RequestId | None:
    """Give a usable id, else None (MCP basic §Requests: a string or an integer)."""
    if isinstance(value, str):
        return value
    if isinstance(value, int) and not isinstance(value, bool) and INT64_MIN <= value <= INT64_MAX:
        return value
    return None


def _members(text: bytes) -> list[tuple[str, object]]:
    """Read the outermost members of an object that is no strict JSON, in order, duplicates kept.

    Not recursive, whatever the depth. Below the outermost level only strings and brackets are
    looked at, so that bad UTF-8, NaN, a missing comma and their like do no harm there. Empty when
    anything else is in doubt: not one object from the first byte to the last, a name that cannot
    be read, too many tokens.
    """
    found: list[tuple[str, object]] = []
    begun = _START.match(text)
    if begun is None:
        return []
    at, left = begun.end(), MAX_TOKENS
    while left > 0:
        left -= 1
        match = _NAME.match(text, at)
        if match is None:
            return []
        name, at = _scalar(match[1]), match.end()
        if not isinstance(name, str):
            return []
        value: object = _UNREAD
        if text[at : at + 1] in (b"{", b"["):
            at, left = _skipped(text, at, left)
        else:
            scalar = _SCALAR.match(text, at)
            if scalar is None:
                return []
            at = scalar.end()
            if name in _TELLING:
                value = _scalar(scalar[0])
        found.append((name, value))
        separator = _SEPARATOR.match(text, at)
        if separator is None:
            return []
        at = separator.end()
        if separator[1] == b"}":
            return found if _END.match(text, at) else []
    return []


def _skipped(text: bytes, start: int, left: int) -> tuple[int, int]:
    """Find where the array or object at `start` ends; `left` tokens may be read, the rest is given.

    No tokens are left when it does not end.
    """
    depth = 0
    for token in _NESTED.finditer(text, start):
        left -= 1
        word = token[0]
        if word[0] in _OPENING:
            depth += len(word)
        elif word == _QUOTE or left <= 0:
            break
        elif word[0] != _QUOTE[0]:
            depth -= len(word)
            if depth <= 0:
                # The last brackets of the run may close what this value is in.
                return token.end() + depth, left
    return len(text), 0


def _scalar(text: bytes) -> object:
    """Read a string or another value without members; `_UNREAD` for what is none."""
    try:
        value: object = msgspec.json.decode(text)
    except msgspec.DecodeError:
        return _UNREAD
    return value

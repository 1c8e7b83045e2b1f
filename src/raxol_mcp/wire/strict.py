"""The JSON parser of the wire: refuses whatever two parsers could read differently.

Not a validator of messages: what comes out may be any JSON value.

On top of RFC 8259 it refuses what the RFC leaves open (§4 names, §6 numbers, §8.2 Unicode) and
what costs more to read than to send. Four questions, each answered by a few C calls over the
whole text, because a Python loop over the values would cost more than the parse itself:

* **Too deep?** Only brackets outside strings open a level, so a text with at most `max_depth`
  opening brackets is fine. Otherwise `depth` counts exactly, without recursion, and before any
  recursive parser runs.
* **A duplicate member?** The parser keeps the last one and drops the others. Written again, the
  value then has fewer strings than the text had: each dropped member takes at least its name
  away, nothing ever adds a string. So the members are distinct if and only if both texts have
  the same number of quotes that delimit strings. How the text escapes or spaces things plays
  no part in that.
* **An integer outside 64 bits?** Needs at least 19 digits in a row, which few texts have.
* Everything else (bad UTF-8, NaN, lone surrogates, floats that overflow) the parser refuses.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import accumulate
from typing import Final

import msgspec

__all__ = [
    "INT64_MAX",
    "INT64_MIN",
    "REREAD_BYTES",
    "Malformed",
    "Reread",
    "TooDeep",
    "depth",
    "parse",
    "reread",
]

INT64_MIN: Final = -(2**63)
INT64_MAX: Final = 2**63 - 1
# Reading a refused text a second time is a courtesy to its sender; this bounds what it costs us.
REREAD_BYTES: Final = 64 * 1024

_decode: Final = msgspec.json.Decoder().decode
_encode: Final = msgspec.json.Encoder().encode

# Digits become "0", both opening brackets "[": one copy of the text answers two questions.
_FLAT: Final = bytes.maketrans(b"{123456789", b"[000000000")
_UINT64_MAX: Final = 2**64 - 1
_WIDE: Final = b"0" * 19  # 10**18 - 1, the largest integer of 18 digits, fits
# Brackets become +1 and -1 as signed bytes; all but brackets and quotes is deleted.
_STEPS: Final = bytes.maketrans(b"[{]}", b"\x01\x01\xff\xff")
_NOT_STRUCTURE: Final = bytes(byte for byte in range(256) if byte not in b'[{]}"')
# As a number, and `find` for what is longer: to look for bytes with `in`, CPython first tries them
# as a number, and writes the error that this is none, every time.
_BACKSLASH: Final = 0x5C
_SHOWN_NAME: Final = 64  # characters of a duplicate name that go into the answer


class Malformed(ValueError):
    """The text is not JSON as this project understands it. The message says why."""


class TooDeep(Malformed):
    """The text nests deeper than allowed, so that no recursive parser may touch it."""


class Reread(msgspec.Struct, frozen=True):
    """What the standard library makes of a text that `parse` refused.

    `members` are those of the outermost object, in order, duplicates kept; empty when the text
    is no object. `duplicate` is the first member name found twice in one object, at any level.
    """

    members: list[tuple[str, object]]
    duplicate: str | None


def parse(text: bytes, *, max_depth: int, wide: bool = False) -> object:
    """Read a JSON text; `max_depth` counts nested arrays and objects (`[]` is 1 deep).

    With `wide`, an integer that does not fit in 64 bits is no mistake: it becomes the float that
    readers with one type of number make of it, or None beyond every float. Up to 2**64 - 1 it is
    kept, because servers write the bounds of their own integers into schemas.

    Raises `TooDeep` or `Malformed`, nothing else. The rules are RFC 8259 and, where it leaves a
    choice, ours; `-0` is an integer and `1.0` is none.
    """
    flat = text.translate(_FLAT)
    if flat.count(b"[") > max_depth and depth(text) > max_depth:
        raise TooDeep(f"nested more than {max_depth} levels deep")
    try:
        value: object = _decode(text)
        if flat.find(_WIDE) >= 0:
            if wide:
                value = _narrowed(value)
            elif _has_wide_integer(value):
                raise Malformed("an integer does not fit in 64 bits")
        rewritten = _encode(value)
    except msgspec.DecodeError as error:
        raise Malformed(_reason(error, text)) from None
    except RecursionError:
        # Only where `max_depth` is set above what the interpreter's stack has left.
        raise TooDeep("nested too deep for this interpreter") from None
    if rewritten == text:
        distinct = True  # all that was read is in the value, or it would be missing here
    elif _BACKSLASH in text:
        distinct = _delimiters(text) == _delimiters(rewritten)
    else:  # no string holds a quote, so neither text escapes one
        distinct = text.count(b'"') == rewritten.count(b'"')
    if not distinct:
        raise Malformed(_duplicate(text))
    return value


def depth(text: bytes) -> int:
    """Count how deep a JSON text nests, without recursion and in linear time.

    Exact for JSON. For anything else it is at least the depth a parser reaches before it stops:
    up to the first error the text is read as a parser reads it, and the highest level counts.
    """
    if _BACKSLASH in text:
        text = _without_escaped_backslashes(text).replace(b'\\"', b"")
    # Every quote left delimits a string: what lies outside strings is every second piece.
    outside = b"".join(text.translate(_STEPS, _NOT_STRUCTURE).split(b'"')[::2])
    return max(accumulate(memoryview(outside).cast("b"), initial=0))


def reread(text: bytes) -> Reread | None:
    """Read a refused text once more, leniently; None when that fails too, or it is too long.

    For naming what was wrong and finding an id, never for executing anything. Strings may hold
    lone surrogates: bytes that are no UTF-8 become some, too. Integers of more than 20 digits
    become None.
    """
    if len(text) > REREAD_BYTES:
        return None
    import json  # failure path only

    duplicates: list[str] = []

    def members(pairs: list[tuple[str, object]]) -> _Members:
        duplicates.extend(_second_uses(pairs))
        return _Members(pairs)

    try:
        value = json.loads(
            text.decode("utf-8", "surrogateescape"),
            object_pairs_hook=members,
            parse_int=_short_integer,
            strict=False,
        )
    except (ValueError, RecursionError):
        return None
    return Reread(
        value if isinstance(value, _Members) else [],
        duplicates[0] if duplicates else None,
    )


class _Members(list[tuple[str, object]]):
    """The members of an object; a class of its own so that no array passes for them."""


def _second_uses(pairs: list[tuple[str, object]]) -> list[str]:
    """Name the members that came a second time, in order of that."""
    first: set[str] = set()
    again: list[str] = []
    for name, _ in pairs:
        if name in first:
            again.append(name)
        first.add(name)
    return again


def _short_integer(digits: str) -> int | None:
    return int(digits) if len(digits) <= 20 else None


def _without_escaped_backslashes(text: bytes) -> bytes:
    r"""Drop each `\\`, so that a backslash still there escapes the character after it.

    A run of backslashes starts unescaped, for the byte before it is no backslash; `replace`
    takes pairs from its start, as a parser does, and leaves the one of an odd run at its end.
    """
    return text.replace(b"\\\\", b"")


def _delimiters(text: bytes) -> int:
    """Count the quotes that begin or end a string: all of them but those escaped."""
    text = _without_escaped_backslashes(text)
    return text.count(b'"') - text.count(b'\\"')


def _has_wide_integer(value: object) -> bool:
    """Look at every value. Only for texts with 19 digits in a row, a long fraction perhaps."""
    pending = [value]
    for item in pending:  # grows while it is walked
        if isinstance(item, int):
            if not INT64_MIN <= item <= INT64_MAX:
                return True
        elif isinstance(item, dict):
            pending.extend(item.values())
        elif isinstance(item, list):
            pending.extend(item)
    return False


def _narrowed(value: object) -> object:
    """Replace integers that no encoder takes, in place where that can be."""
    outermost = [value]
    pending: list[dict[str, object] | list[object]] = [outermost]
    for holder in pending:  # grows while it is walked
        if isinstance(holder, dict):
            holder.update({name: _narrow(item) for name, item in holder.items()})
            items: Iterable[object] = holder.values()
        else:
            holder[:] = [_narrow(item) for item in holder]
            items = holder
        pending.extend(item for item in items if isinstance(item, dict | list))
    return outermost[0]


def _narrow(item: object) -> object:
    if isinstance(item, int) and not INT64_MIN <= item <= _UINT64_MAX:
        return _float(item)
    return item


def _float(integer: int) -> float | None:
    try:
        return float(integer)
    except OverflowError:
        return None


def _reason(error: msgspec.DecodeError, text: bytes) -> str:
    """Say what the decoder refused.

    Of a lone surrogate near the end it says that the text was cut off, though the standard
    library, which lets lone surrogates pass, finds the text complete.
    """
    if isinstance(error, msgspec.ValidationError):  # no type was asked for but the number's own
        return "a number is out of range"
    words = str(error)
    cut_off = "truncated" in words and reread(text) is None
    if cut_off or not ("truncated" in words or "surrogate" in words):
        return words
    return "half of a surrogate pair is missing"


def _duplicate(text: bytes) -> str:
    again = reread(text)
    if again is None or again.duplicate is None:
        return "duplicate member"
    return f'duplicate member "{again.duplicate[:_SHOWN_NAME]}"'

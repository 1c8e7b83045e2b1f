"""Results turned into JSON once, and strictly: what is lost or refused later is found here.

Not the place where a Python value becomes a tool result: that is decided above.
"""

from __future__ import annotations

from math import isfinite
from typing import Final

import msgspec

from raxol_mcp.wire.strict import INT64_MAX, INT64_MIN, Malformed, parse

__all__ = ["UnencodableResult", "decode_raw", "encode_result", "to_json"]

_encode: Final = msgspec.json.Encoder().encode
_decode: Final = msgspec.json.Decoder().decode
_PLAIN: Final = frozenset({str, bool, type(None)})
# JSON that is already encoded is held to what this side would accept itself.
_RAW_DEPTH: Final = 512


class UnencodableResult(ValueError):
    """A value that strict JSON cannot carry. The message says why, and holds no part of it."""


def encode_result(
    payload: object, *, max_bytes: int, foreign: object = msgspec.UNSET
) -> msgspec.Raw:
    """Encode a result, at most `max_bytes` long; later `encode` copies it as it is.

    `foreign` is the part of it that user code made, where the rest is known to be plain: only
    that is then looked through for what would be lost. By default all of it.

    Takes JSON values and what msgspec encodes: tuples, sets, bytes (base64), dates, dataclasses,
    Structs. Raises `UnencodableResult` for NaN and infinities (msgspec alone would write null),
    lone surrogates, cycles, unsupported types, integers outside 64 bits, names in a dict that
    are not strings, `msgspec.Raw` that is not strict JSON, and for a result that is too long.
    RFC 8259 §6, §8; RFC 7493 §2.
    """
    written = to_json(payload)
    if len(written) > max_bytes:
        raise UnencodableResult(f"{len(written)} bytes are more than the {max_bytes} allowed")
    _refuse_loss(payload if foreign is msgspec.UNSET else foreign)
    return msgspec.Raw(written)


def to_json(value: object) -> bytes:
    """Write a value as compact JSON; NaN and infinities become null, `msgspec.Raw` is copied.

    Raises `UnencodableResult` for whatever the encoder refuses.
    """
    try:
        return _encode(value)
    except RecursionError:
        raise UnencodableResult("contains itself, or is nested too deep") from None
    except UnicodeEncodeError:
        raise UnencodableResult("a string holds half of a surrogate pair") from None
    except (TypeError, ValueError, OverflowError, AttributeError) as error:
        # The encoder's words name types and never values.
        raise UnencodableResult(str(error)) from error


def decode_raw(raw: msgspec.Raw) -> object:
    """Give back the value of an encoded result, as a peer would read it."""
    value: object = _decode(raw)
    return value


def _refuse_loss(payload: object) -> None:
    """Find what the encoder writes without a complaint although a peer reads something else.

    Runs after the encoder, which refuses cycles, so that this ends.
    """
    pending = [payload]
    for value in pending:  # grows while it is walked
        if type(value) is dict:
            for name, item in value.items():
                if not isinstance(name, str):
                    # The encoder would write 1 and "1" as the same member, twice.
                    raise UnencodableResult(f"a dict has a name of type {type(name).__name__}")
                if type(item) is not str:  # what most members are
                    pending.append(item)
        elif type(value) is list or type(value) is tuple:
            pending.extend(value)
        elif type(value) not in _PLAIN:
            pending.append(_plainer(value))


def _plainer(value: object) -> object:
    """Judge a number, and turn anything else the encoder knows into what it writes for that."""
    if isinstance(value, float):
        if not isfinite(value):
            raise UnencodableResult(f"{value} is not a JSON number")
        return None
    if isinstance(value, int):
        if not INT64_MIN <= value <= INT64_MAX:
            raise UnencodableResult("an integer does not fit in 64 bits")
        return None
    if isinstance(value, msgspec.Raw):
        try:
            parse(bytes(value), max_depth=_RAW_DEPTH)
        except Malformed as error:
            raise UnencodableResult(f"msgspec.Raw: {error}") from None
        return None
    try:
        return msgspec.to_builtins(value)
    except TypeError as error:
        raise UnencodableResult(str(error)) from error

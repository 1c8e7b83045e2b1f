"""wire/results.py: a result is JSON that every peer reads as it was meant, or an error here."""

import collections
import dataclasses
import datetime
import enum
import json
import math
import uuid
from typing import NamedTuple

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from raxol_mcp.wire.results import UnencodableResult, decode_raw, encode_result, to_json
from raxol_mcp.wire.strict import INT64_MAX, INT64_MIN

ROOM = 1024 * 1024


def encoded(payload: object) -> bytes:
    """Return the JSON of a result."""
    return bytes(encode_result(payload, max_bytes=ROOM))


def refusal(payload: object) -> str:
    """Return why a result is refused."""
    with pytest.raises(UnencodableResult) as caught:
        encode_result(payload, max_bytes=ROOM)
    return str(caught.value)


class Level(enum.Enum):
    LOW = "low"
    BROKEN = math.nan


class Colour(enum.StrEnum):
    RED = "red"


class Size(enum.IntEnum):
    ONE = 1
    HUGE = 2**63


class Point(NamedTuple):
    x: object
    y: object


@dataclasses.dataclass
class Record:
    value: object


class Struct(msgspec.Struct):
    value: object


scalars = (
    st.none()
    | st.booleans()
    | st.integers(INT64_MIN, INT64_MAX)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
)
values = st.recursive(
    scalars,
    lambda items: st.lists(items, max_size=4) | st.dictionaries(st.text(), items, max_size=4),
    max_leaves=15,
)


@given(values)
def test_json_values_come_out_as_they_went_in(value: object) -> None:
    """RFC 8259; repr tells 1 from 1.0 and True."""
    raw = encode_result(value, max_bytes=ROOM)
    assert repr(json.loads(bytes(raw))) == repr(value)
    assert repr(decode_raw(raw)) == repr(value)


@given(values)
def test_a_result_is_one_line(value: object) -> None:
    """MCP basic/transports §stdio: no message holds a newline."""
    assert not {b"\n", b"\r"} & {bytes([byte]) for byte in encoded(value)}


@pytest.mark.parametrize(
    ("payload", "expected"),
    [
        ({"a": (1, "b", None)}, b'{"a":[1,"b",null]}'),
        ([{"only"}], b'[["only"]]'),
        (b"\x00\xff", b'"AP8="'),
        (bytearray(b"a"), b'"YQ=="'),
        (datetime.datetime(2026, 7, 28, tzinfo=datetime.UTC), b'"2026-07-28T00:00:00Z"'),
        (uuid.UUID(int=1), b'"00000000-0000-0000-0000-000000000001"'),
        (Record({"a": Struct([Level.LOW])}), b'{"value":{"a":{"value":["low"]}}}'),
        (Point(1, "y"), b'[1,"y"]'),
        (Size.ONE, b"1"),
        ({Colour.RED: Colour.RED}, b'{"red":"red"}'),
        (collections.OrderedDict(a=1), b'{"a":1}'),
        ({"a": msgspec.Raw(b'{"b": [1]}')}, b'{"a":{"b": [1]}}'),
        ({"text": "null", "none": None}, b'{"text":"null","none":null}'),
        ("\U0001f600\u2028\x00", b'"\xf0\x9f\x98\x80\xe2\x80\xa8\\u0000"'),
    ],
)
def test_other_values_are_written_as_documented(payload: object, expected: bytes) -> None:
    """ours: as msgspec does."""
    assert encoded(payload) == expected


CYCLE: list[object] = []
CYCLE.append({"again": CYCLE})

UNFIT = {
    "nan": (math.nan, "nan is not a JSON number"),
    "infinity": (math.inf, "inf is not a JSON number"),
    "minus infinity": (-math.inf, "-inf is not a JSON number"),
    "nan in an enum": (Level.BROKEN, "nan is not a JSON number"),
    "lone surrogate": ("\ud800", "a string holds half of a surrogate pair"),
    "lone surrogate in a name": ({"\ud83d": 1}, "a string holds half of a surrogate pair"),
    "integer above": (2**63, "an integer does not fit in 64 bits"),
    "integer below": (-(2**63) - 1, "an integer does not fit in 64 bits"),
    "integer far above": (2**70, "an integer does not fit in 64 bits"),
    "integer in an enum": (Size.HUGE, "an integer does not fit in 64 bits"),
    "name is an int": ({1: "a", "1": "b"}, "a dict has a name of type int"),
    "name is bytes": ({b"a": 1}, "a dict has a name of type bytes"),
    "name is an enum": ({Level.LOW: 1}, "a dict has a name of type Level"),
    "name is None": ({None: 1}, "Only dicts with str-like or number-like keys are supported"),
    "cycle": (CYCLE, "contains itself, or is nested too deep"),
    "object": (object(), "Encoding objects of type object is unsupported"),
    "complex": (1j, "Encoding objects of type complex is unsupported"),
    "raw that is cut off": (msgspec.Raw(b"{"), "msgspec.Raw: Input data was truncated"),
    "raw that is no utf-8": (
        msgspec.Raw(b'"\xff"'),
        "msgspec.Raw: Invalid UTF-8 encoded string",
    ),
    "raw that has a member twice": (
        msgspec.Raw(b'{"a":1,"a":2}'),
        'msgspec.Raw: duplicate member "a"',
    ),
    "raw in a dataclass": (
        Record(msgspec.Raw(b"1")),
        "Encoding objects of type msgspec.Raw is unsupported",
    ),
}


@pytest.mark.parametrize(
    "wrap",
    [
        lambda value: value,
        lambda value: {"content": [{"type": "text", "text": "x"}], "structuredContent": value},
        lambda value: [0, "null", None, 0.5, (value,)],
    ],
    ids=["bare", "member", "item"],
)
@pytest.mark.parametrize("name", UNFIT)
def test_a_value_json_cannot_carry_is_refused_wherever_it_is(name: str, wrap: object) -> None:
    """RFC 8259 §6, §8.2; https://github.com/modelcontextprotocol/python-sdk/issues/3341."""
    value, reason = UNFIT[name]
    assert callable(wrap)
    assert refusal(wrap(value)) == reason


@pytest.mark.parametrize("value", [math.nan, 2**64, {2: "x"}])
def test_a_value_inside_a_dataclass_or_struct_is_found(value: object) -> None:
    """RFC 8259 §6."""
    for payload in (Record(value), Struct([value]), Record(Struct(value)), Point("x", value)):
        refusal(payload)


def test_half_an_object_is_refused() -> None:
    """ours: an attribute that was never set is the tool's mistake, not a crash of the writer."""
    half = Struct(1)
    del half.value
    assert "value" in refusal(half)


def test_a_refusal_is_a_value_error_and_keeps_values_to_itself() -> None:
    """ours: the text may go to a log or to the peer; a result may hold a secret."""
    for payload in ({"password": 2**70}, {"password": "hunter2\ud800"}, {("hunter2",): 1}):
        assert "hunter2" not in refusal(payload)
    assert issubclass(UnencodableResult, ValueError)


@pytest.mark.parametrize(
    ("text", "fits"), [("x" * 8, True), ("x" * 9, False), ("\u00e9" * 5, False)]
)
def test_a_result_may_have_so_many_bytes_and_no_more(text: str, fits: bool) -> None:
    """ours: bytes on the wire, not characters."""
    if fits:
        assert len(bytes(encode_result(text, max_bytes=10))) == 10
    else:
        with pytest.raises(UnencodableResult, match=r"1[12] bytes are more than the 10 allowed"):
            encode_result(text, max_bytes=10)


def test_plain_writing_turns_nan_into_null_and_copies_raw() -> None:
    """ours: what the strict way is for."""
    assert to_json({"a": math.nan, "b": msgspec.Raw(b"[ 1 ]")}) == b'{"a":null,"b":[ 1 ]}'

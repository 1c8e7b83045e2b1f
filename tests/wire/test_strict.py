"""wire/strict.py: texts two parsers could read differently are refused, all others are read.

The yardstick is the standard library's parser with hooks that refuse what RFC 8259 leaves open.
"""

import json
import random
import sys
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from raxol_mcp.wire.strict import (
    INT64_MAX,
    INT64_MIN,
    REREAD_BYTES,
    Malformed,
    Reread,
    TooDeep,
    depth,
    parse,
    reread,
)

MAX_DEPTH = 6
REFUSED = "refused"


def read(text: bytes, *, max_depth: int = 128) -> object:
    """Return the value of a text, or `REFUSED`."""
    try:
        return parse(text, max_depth=max_depth)
    except Malformed:
        return REFUSED


def refusal(text: bytes, *, max_depth: int = 128) -> str:
    """Return why a text is refused."""
    with pytest.raises(Malformed) as caught:
        parse(text, max_depth=max_depth)
    return str(caught.value)


# --- The yardstick --------------------------------------------------------------------------------


def yardstick(text: bytes, *, max_depth: int) -> object:
    """Read a text slowly, by the same rules written down a second time."""
    try:
        value = json.loads(
            text.decode("utf-8"),
            object_pairs_hook=_distinct,
            parse_constant=_refuse,
            parse_int=_narrow,
            parse_float=_finite,
        )
    except (ValueError, RecursionError):
        return REFUSED
    if _depth(value) > max_depth or _has_lone_surrogate(value):
        return REFUSED
    return value


def _refuse(_: str) -> None:
    raise ValueError


def _distinct(pairs: list[tuple[str, object]]) -> dict[str, object]:
    if len({name for name, _ in pairs}) < len(pairs):
        raise ValueError
    return dict(pairs)


def _narrow(digits: str) -> int:
    if not -(2**63) <= int(digits) < 2**63:
        raise ValueError
    return int(digits)


def _finite(digits: str) -> float:
    if abs(float(digits)) == float("inf"):
        raise ValueError
    return float(digits)


def _depth(value: object) -> int:
    if isinstance(value, dict):
        return 1 + max(map(_depth, value.values()), default=0)
    if isinstance(value, list):
        return 1 + max(map(_depth, value), default=0)
    return 0


def _has_lone_surrogate(value: object) -> bool:
    return any("\ud800" <= char <= "\udfff" for char in json.dumps(value, ensure_ascii=False))


# --- Texts: JSON, nearly JSON, and not JSON -------------------------------------------------------

# Chosen to be confused with structure, with each other, or with an escape in front of them.
CHARACTERS = (
    *("a", ":", ",", "{", "}", "[", "]", "\\\\", '\\"', "\\/", "\\n", "\\u003a", "\\u0022"),
    *("\\u005c", "\\u0061", "\\u0000", "\\ud83d\\ude00", "\u00e9", "\u2028", "\U0001f600"),
    *("\\ud83d", "\\ude00", "0" * 19),
)
strings = st.lists(st.sampled_from(CHARACTERS), max_size=5).map(lambda some: f'"{"".join(some)}"')
names = st.sampled_from(('"a"', '"\\u0061"', '":"', '"\\u003a"', '""', '"A"', '"\\\\"')) | strings
NUMBERS = (
    *("0", "-0", "1", "-1", "1.0", "-0.0", "1e5", "1E-5", "0.12345678901234567890", "1e308"),
    *("1e309", "-1e309", "999999999999999999", "1234567890123456789", "9007199254740993"),
    *(str(INT64_MAX), str(INT64_MAX + 1), str(INT64_MIN), str(INT64_MIN - 1), str(2**64)),
    *("1" * 30, "1" * 30 + ".5", "1" * 25 + "e3"),
)
LITERALS = ("true", "false", "null", "NaN", "Infinity", "-Infinity")
spaces = st.sampled_from(("", "", "", " ", "\n", "\t\r"))


def arrays(items: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    inside = st.tuples(spaces, items, spaces).map("".join)
    return st.lists(inside, max_size=4).map(lambda some: f"[{','.join(some)}]")


def objects(items: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    member = st.tuples(spaces, names, spaces, st.just(":"), spaces, items, spaces).map("".join)
    return st.lists(member, max_size=4).map(lambda some: f"{{{','.join(some)}}}")


texts = st.recursive(
    strings | st.sampled_from(NUMBERS) | st.sampled_from(LITERALS),
    lambda items: arrays(items) | objects(items),
    max_leaves=12,
).map(str.encode)

FRAGMENTS = (
    *('"', "\\", "\\u", "{", "}", "[", "]", ":", ",", "0", "9" * 19, "-", ".", "e", " ", "\n"),
    *('"a"', '"a":', "true", "nul", "\x00", "\x1f", "\x0b", "\u00a0", "\ufeff", "\\ud83d"),
)
soup = st.lists(
    st.sampled_from(FRAGMENTS).map(str.encode) | st.binary(max_size=2), max_size=20
).map(b"".join)


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """Draw a text and change, drop, double or insert a few bytes of it."""
    text = bytearray(draw(texts))
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(text)))
        piece = draw(st.sampled_from(FRAGMENTS).map(str.encode) | st.binary(max_size=1))
        text[at : at + draw(st.integers(0, 2))] = piece
    return bytes(text)


@settings(max_examples=400)
@given(texts)
@example(b'{"a":1,"a":"\\u003a"}')  # the second value looks like a name and a colon
@example(b'{"a\\\\":1,"a\\\\":2}')
@example(b'{"a\\"":1,"a\\u0022":2}')
@example(b'["\\\\\\\\", {"\\\\":"\\\\\\"", "\\\\":0}]')
def test_a_text_is_read_as_the_yardstick_reads_it(text: bytes) -> None:
    """RFC 8259 §4, §6, §8.2; repr tells 1 from 1.0 and True, and 0.0 from -0.0."""
    expected = yardstick(text, max_depth=MAX_DEPTH)
    assert repr(read(text, max_depth=MAX_DEPTH)) == repr(expected)


@settings(max_examples=400)
@given(damaged() | soup)
@example(b'"\\"')
@example(b'[\\"[[[[[[[["')
@example(b'{"a":1,"a":1')
@example(b"")
def test_a_damaged_text_is_judged_as_the_yardstick_does(text: bytes) -> None:
    """ours: one parser for all layers, so it must not be a lenient one."""
    expected = yardstick(text, max_depth=MAX_DEPTH)
    assert repr(read(text, max_depth=MAX_DEPTH)) == repr(expected)


@given(texts)
def test_depth_is_exact_for_json(text: bytes) -> None:
    """ours: every array and object is one level, empty or not."""
    value = json.loads(text, object_pairs_hook=lambda pairs: [value for _, value in pairs])
    assert depth(text) == _depth(value)


def deepest_reached(text: bytes) -> int:
    """Walk a text byte by byte to the first backslash that no parser would pass."""
    level = most = 0
    in_string = escaped = False
    for byte in text:
        if escaped:
            escaped = False
        elif byte == ord("\\"):
            if not in_string:
                break
            escaped = True
        elif byte == ord('"'):
            in_string = not in_string
        elif not in_string:
            level += (byte in b"[{") - (byte in b"]}")
            most = max(most, level)
    return most


@given(damaged() | soup)
@example(b'[\\"[[["[')
@example(b'["\\\\\\"[[')
@example(b'["\\')
def test_depth_is_never_below_what_a_parser_would_reach(text: bytes) -> None:
    """ours: the depth is bounded before anything recurses, whatever the bytes are."""
    assert depth(text) >= deepest_reached(text)


# --- Depth ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "levels"),
    [
        (b"1", 0),
        (b"[]", 1),
        (b'{"a":{}}', 2),
        (b"[[],[],[[]]]", 3),
        (b'"[[["', 0),
        (b'["[\\"[[", "]]"]', 1),
        (b'["\\\\",[]]', 2),
        (b'["\\\\\\"[[[", []]', 2),
        (b'["[[[', 1),  # never closed: all that follows is inside the string
        (b'["a"]]]]]]][', 1),
    ],
)
def test_only_brackets_outside_strings_count(text: bytes, levels: int) -> None:
    """RFC 8259 §7."""
    assert depth(text) == levels


@pytest.mark.parametrize("levels", [127, 128])
def test_a_text_may_nest_up_to_the_limit(levels: int) -> None:
    """ours: 128 levels."""
    assert _depth(parse(b"[" * levels + b"]" * levels, max_depth=128)) == levels


@pytest.mark.parametrize("levels", [129, 990, 100_000])
@pytest.mark.parametrize("shape", [(b"[", b"]"), (b'{"a":', b"}"), (b"[", b"")])
def test_a_text_nested_deeper_is_refused_unread(levels: int, shape: tuple[bytes, bytes]) -> None:
    """ours: 128 levels; MCP basic §JSON Schema Usage asks to bound what a message can cost."""
    opening, closing = shape
    text = opening * levels + b"1" + closing * levels
    with pytest.raises(TooDeep, match="nested more than 128 levels deep"):
        parse(text, max_depth=128)


def test_brackets_in_strings_do_not_make_a_text_deep() -> None:
    """RFC 8259 §7: a tool that is given source code must not be refused for its brackets."""
    code = "[" * 300 + "\\" * 3 + '"' + "{" * 300
    text = json.dumps({"code": code}).encode()
    assert parse(text, max_depth=2) == {"code": code}


def test_a_limit_above_what_the_interpreter_can_do_is_no_crash() -> None:
    """ours: the caller chose the limit, and the message is still only refused."""
    levels = 2 * sys.getrecursionlimit()
    with pytest.raises(TooDeep, match="too deep for this interpreter"):
        parse(b"[" * levels + b"]" * levels, max_depth=levels)


# --- Duplicate members ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (b'{"method":"tools/list","method":"tools/call"}', "method"),
        (b'{"a":{"b":1,"b":1}}', "b"),
        (b'[[{"x":1,"y":2,"x":3}]]', "x"),
        (b'{"m":1,"\\u006d":2}', "m"),
        (b'{"a" :1, "a"\n:\t":"}', "a"),
        (b'{"":1,"":2}', ""),
        (b'{"a":1,"a":2,"b":1,"b":2}', "a"),
        (b'{"%s":1,"%s":2}' % (b"n" * 100, b"n" * 100), "n" * 64),
    ],
)
def test_a_duplicate_member_is_refused_by_name(text: bytes, name: str) -> None:
    """RFC 8259 §4: software differs in what it makes of one; no answer holds more than a bit."""
    assert refusal(text) == f'duplicate member "{name}"'


def test_a_duplicate_member_of_a_long_text_is_refused_without_its_name() -> None:
    """ours: a refused text is read a second time only while that is cheap."""
    text = b'{"a":1,"a":"' + b"x" * REREAD_BYTES + b'"}'
    assert refusal(text) == "duplicate member"


@pytest.mark.parametrize(
    "text",
    [
        b'{"method":1,"Method":2,"METHOD":3}',
        '{"params":1,"param\u017f":2}'.encode(),
        '{"k":1,"\u212a":2,"K":3}'.encode(),
        b'{"a":1,"a\\u0000":2}',
        b'{"a":{"a":{"a":1}},"b":[{"a":1},{"a":1}]}',
    ],
)
def test_names_that_only_look_alike_are_different(text: bytes) -> None:
    """JSON-RPC 2.0 §4: case-sensitive; https://github.com/advisories/GHSA-wvj2-96wp-fq3f."""
    assert parse(text, max_depth=128) == json.loads(text)


# --- Numbers and strings --------------------------------------------------------------------------


@pytest.mark.parametrize("number", [INT64_MIN, INT64_MAX, 2**53 + 1, -1, 0])
@pytest.mark.parametrize("frame", ["%d", "[0,%d]", '{"a":{"b":[%d]}}'])
def test_integers_of_64_bits_keep_every_digit(number: int, frame: str) -> None:
    """RFC 8259 §6; https://github.com/modelcontextprotocol/python-sdk/issues/3060."""
    text = frame % number
    assert parse(text.encode(), max_depth=128) == json.loads(text)


@pytest.mark.parametrize("number", [INT64_MIN - 1, INT64_MAX + 1, 2**64, 10**400])
@pytest.mark.parametrize("frame", ["%d", '["a",%d]', '{"a":{"b":[0.5,%d]}}'])
def test_integers_outside_64_bits_are_refused(number: int, frame: str) -> None:
    """ours: other languages would round them."""
    assert refusal((frame % number).encode()) == "an integer does not fit in 64 bits"


def test_a_number_of_five_thousand_digits_is_refused() -> None:
    """ours: https://docs.python.org/3/library/stdtypes.html#int-max-str-digits."""
    assert read(b"9" * 5_000) == REFUSED


@pytest.mark.parametrize("text", [b"1e400", b"[-1e400]", b'{"a":[1e999]}', b"1" * 400 + b".0"])
def test_numbers_that_overflow_are_refused(text: bytes) -> None:
    """RFC 8259 §6: they would become infinities."""
    assert refusal(text) == "a number is out of range"


@pytest.mark.parametrize("text", [b"NaN", b"[Infinity]", b'{"a":-Infinity}', b"01", b"+1", b".5"])
def test_numbers_that_are_none_are_refused(text: bytes) -> None:
    """RFC 8259 §6."""
    assert read(text) == REFUSED


@pytest.mark.parametrize(
    "text",
    [
        b'"\\ud83d"',
        b'"\\ude00"',
        b'{"a":"\\ud83d"}',
        b'{"\\ude00\\ud83d":"and more text behind it"}',
        b'["\\ud83d\\ud83d\\ude00"]',
    ],
)
def test_half_of_a_surrogate_pair_is_refused_with_that_reason(text: bytes) -> None:
    """RFC 8259 §8.2: what JavaScript writes for an emoji that was cut in two."""
    assert refusal(text) == "half of a surrogate pair is missing"


@pytest.mark.parametrize("text", [b'{"a":"\\ud83d', b'{"a":1', b"tru", b'"'])
def test_a_text_that_was_cut_off_is_refused_with_that_reason(text: bytes) -> None:
    """JSON-RPC 2.0 §5.1: the message says what was wrong."""
    assert "truncated" in refusal(text)


def test_a_place_is_named_where_the_text_stops_being_json() -> None:
    """JSON-RPC 2.0 §5.1."""
    assert refusal(b'{"a":NaN}') == "JSON is malformed: invalid character (byte 5)"


@pytest.mark.parametrize("text", [b'"\xff"', b'"\xed\xa0\x80"', b'"\xc0\x80"', b'{"\xe9":1}'])
def test_bytes_that_are_no_utf_8_are_refused(text: bytes) -> None:
    """RFC 8259 §8.1; surrogates and overlong forms are no UTF-8 either (RFC 3629 §3)."""
    assert "UTF-8" in refusal(text)


@pytest.mark.parametrize("size", [1, 2, 3, 1_000, 100_000])
def test_large_texts_are_read_like_small_ones(size: int) -> None:
    """ours: what is counted over a whole text must not depend on its length."""
    rng = random.Random(size)
    pieces = ["a", '"', "\\", '\\"', "[", "{", "\n", "\u2028", "1234567890123456789", ":"]
    value = [{rng.choice(pieces) * 2: rng.choice(pieces), "x": [rng.random()]} for _ in range(size)]
    assert parse(json.dumps(value).encode(), max_depth=3) == value


# --- Reading a refused text again -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b'{"id":1,"id":2}', Reread([("id", 1), ("id", 2)], "id")),
        (b'{"a":NaN,"b":"\\ud83d"}', None),  # compared below: NaN equals nothing
        (b'{"a":"\xff"}', Reread([("a", "\udcff")], None)),
        (b'{"a":"\n"}', Reread([("a", "\n")], None)),
        (b'{"a":%d,"b":%d}' % (10**19, 10**20), Reread([("a", 10**19), ("b", None)], None)),
        (b'[{"id":1}]', Reread([], None)),
        (b'[["id",1]]', Reread([], None)),
        (b'{"b":[{"a":1,"a":2}]}', Reread([("b", [[("a", 1), ("a", 2)]])], "a")),
        (b"3", Reread([], None)),
    ],
)
def test_a_refused_text_may_still_show_its_members(text: bytes, expected: Reread | None) -> None:
    """ours: to name what was wrong and to find an id."""
    again: Any = reread(text)
    if expected is None:
        assert [(name, repr(value)) for name, value in again.members] == [
            ("a", "nan"),
            ("b", repr("\ud83d")),
        ]
    else:
        assert again == expected


@pytest.mark.parametrize("text", [b"{", b"", b"[" * 60_000, b"9" * 20 + b"x"])
def test_what_cannot_be_read_at_all_shows_nothing(text: bytes) -> None:
    """ours."""
    assert reread(text) is None


def test_a_text_is_read_again_only_up_to_a_size() -> None:
    """ours: 64 KiB."""
    fits = b'"' + b"x" * (REREAD_BYTES - 2) + b'"'
    assert reread(fits) is not None
    assert reread(fits + b" ") is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b"18446744073709551615", 2**64 - 1),
        (b"-9223372036854775808", -(2**63)),
        (b"18446744073709551616", float(2**64)),
        (b"-9223372036854775809", float(-(2**63) - 1)),
        (b"9" * 400, None),
        (b'{"a":[1,{"b":99999999999999999999}],"c":true}', {"a": [1, {"b": 1e20}], "c": True}),
        (b'"' + b"9" * 40 + b'"', "9" * 40),
    ],
)
def test_a_client_reads_integers_of_any_width(text: bytes, expected: object) -> None:
    """Servers write the bounds of unsigned 64 bit integers into the schemas of their tools."""
    read = parse(text, max_depth=8, wide=True)
    assert (read, type(read)) == (expected, type(expected))


def test_a_client_still_refuses_what_is_ambiguous() -> None:
    """RFC 8259 §4: two members of one name."""
    with pytest.raises(Malformed):
        parse(b'{"a":99999999999999999999,"a":1}', max_depth=8, wide=True)

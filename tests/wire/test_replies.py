"""wire/replies.py: of an answer that cannot be read the id is found, where it is beyond doubt.

The yardstick is the standard library's parser, which reads more than the strict one.
"""

import json
import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from raxol_mcp.errors import INVALID_PARAMS, INVALID_REQUEST, PARSE_ERROR
from raxol_mcp.wire.jsonrpc import (
    Batch,
    Failure,
    Ignored,
    Incoming,
    Invalid,
    Notification,
    Request,
    Response,
    decode,
)
from raxol_mcp.wire.replies import MAX_TOKENS, UnreadableReply, decode_reply

MAX_DEPTH = 6


def reply(members: bytes) -> bytes:
    """Return the line of an answer to request 3 with more members."""
    return b'{"jsonrpc":"2.0","id":3,' + members + b"}"


# --- Messages are themselves ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b'{"jsonrpc":"2.0","id":3,"result":{}}', Response(3, {})),
        (b'{"jsonrpc":"2.0","id":3,"result":null}', Response(3, None)),
        (b'{"jsonrpc":"2.0","id":"3","result":{}}\r', Response("3", {})),
        (b'\xef\xbb\xbf{"jsonrpc":"2.0","id":3,"result":{}}', Response(3, {})),
        (b' \t{"jsonrpc":"2.0","id":3,"result":{}}', Response(3, {})),
        (
            '{"jsonrpc":"2.0","id":3,"result":"a\u2028b\u0085c"}'.encode(),
            Response(3, "a\u2028b\u0085c"),
        ),
        (
            b'{"jsonrpc":"2.0","id":3,"error":{"code":-32601,"message":"no"}}',
            Failure(3, -32601, "no"),
        ),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping"}', Request(1, "ping")),
        (b'{"jsonrpc":"2.0","method":"n"}', Notification("n")),
        (b'[{"jsonrpc":"2.0","id":3,"result":{}}]', Batch([Response(3, {})])),
    ],
)
def test_a_message_is_itself(line: bytes, message: Incoming) -> None:
    """MCP 2026-07-28 basic §Messages; a BOM and a carriage return are no reason to lose one."""
    assert decode_reply(line) == message


# --- What is no message ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"\r",
        b"Starting server v1.2 on stdio",
        b"{not json}",
        b"[1,2",
        b"[]",
        b'"x"',
        b"17",
        b"null",
        b"\xff\xfe",
        b"{}",
        b"{",
        b'{"level":"info","message":"listening"}',
        b'{"level":"error","id":3,"error":"boom"}',
        b'{"level":"info","id":3,"method":"GET"}',
        b'{"time":NaN,"id":3,"method":"GET"}',
        b'{"time":NaN,"id":3,"error":"boom"}',
        b'{"id":3}',
        b'{"jsonrpc":"2.0"}',
        b'{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"?"}}',
        b'{"jsonrpc":"2.0","id":1.5,"result":{}}',
        b'{"jsonrpc":"2.0","id":true,"result":{}}',
        b'{"jsonrpc":"2.0","id":9223372036854775808,"result":{}}',
        b'{"jsonrpc":"2.0","id":[3],"result":NaN}',
        b'{"jsonrpc":"2.0","method":"n","params":[1]}',
    ],
)
def test_what_is_no_message_is_dropped_and_never_answered(line: bytes) -> None:
    """modelcontextprotocol/typescript-sdk#1762: servers print banners, clients stay up."""
    assert isinstance(decode_reply(line), Ignored)


def test_a_dropped_line_says_why() -> None:
    assert decode_reply(b"") == Ignored("blank line")
    assert decode_reply(b"17") == Ignored("Invalid request: a message is an object with a method")


# --- Answers that cannot be read ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (reply(b'"result":' + b"[" * 200 + b"]" * 200), "nested more than 128 levels deep"),
        (reply(b'"result":{"text":"\xff"}'), "Invalid UTF-8 encoded string"),
        (reply(b'"result":{"a":1,"a":2}'), 'duplicate member "a"'),
        (reply(b'"result":1,"result":2'), 'duplicate member "result"'),
        (reply(b'"result":1e999'), "a number is out of range"),
        (reply(b'"result":"\\ud800"'), "half of a surrogate pair is missing"),
        (reply(b'"error":{"code":NaN}'), "JSON is malformed: invalid character (byte 40)"),
        (reply(b'"result":undefined'), "JSON is malformed: invalid character (byte 33)"),
        (reply(b'"result":[1 2]'), "JSON is malformed: expected ',' or ']' (byte 36)"),
        (b'{"result":NaN,"id":3}', "JSON is malformed: invalid character (byte 10)"),
        (b'{"id":3,"result":{}}', "response without the right jsonrpc version"),
        (b'{"jsonrpc":"1.0","id":3,"result":{}}', "response without the right jsonrpc version"),
        (b'{"jsonrpc":"2.0","id":3}', "neither a result nor an error"),
        (b'{"jsonrpc":"2.0","id":3,"data":{}}', "neither a result nor an error"),
        (b'{"jsonrpc":"2.0","id":3,"method":null,"result":NaN}', None),
        (b'\xef\xbb\xbf {"jsonrpc":"2.0", "id" : 3 , "result" : NaN } \r', None),
        (b'{ "jsonrpc":"2.0", "id":3, "result" : {"}":["]",{"a":"\\"}"}]} , "x":NaN }\r', None),
        (b'{"jsonrpc":"2.0","\\u0069d":3,"result":[NaN]}', None),
    ],
)
def test_an_answer_that_cannot_be_read_ends_its_call(line: bytes, why: str | None) -> None:
    """modelcontextprotocol/python-sdk#2454: the call waited for ever, and so did all others."""
    message = decode_reply(line)
    assert isinstance(message, UnreadableReply)
    assert message.id == 3
    assert message.why == why or why is None


def test_a_string_id_is_found_too() -> None:
    assert decode_reply(b'{"id":"a\\"b","result":NaN}') == UnreadableReply(
        'a"b', "JSON is malformed: invalid character (byte 22)"
    )


@pytest.mark.parametrize(
    "line",
    [
        reply(b'"id":4,"result":NaN'),
        reply(b'"id":3,"result":NaN'),
        reply(b'"result":"\xff"')[:-1],
        reply(b'"result":"\xff"') + b"}",
        reply(b'"result":"\xff"') + reply(b'"result":1'),
        b"DEBUG " + reply(b'"result":1'),
        reply(b'"result":{"a":"\xff}'),
        reply(b'"result":"\xff'),
        reply(b'"result":[[NaN]'),
        reply(b'"result":[[[NaN'),
        reply(b'"result" NaN'),
        reply(b'"result":'),
        reply(b'"result":NaN "x":1'),
        reply(b'"\xff":1,"result":NaN'),
        reply(b'"\\ud800":1,"result":NaN'),
        b'{"jsonrpc":"2.0","id":nan,"result":1}',
        b'{"jsonrpc":"2.0","result":{"id":3,"x":NaN}}',
    ],
)
def test_in_doubt_no_call_is_ended(line: bytes) -> None:
    """ours: a call must not fail because of what was meant for another one."""
    assert isinstance(decode_reply(line), Ignored)


def test_looking_for_an_id_has_a_bound() -> None:
    """ours: finding it is a courtesy, and must not become a way to keep the client busy."""
    inside = reply(b'"result":["\xff"' + b',""' * (MAX_TOKENS - 10) + b"]")
    assert isinstance(decode_reply(inside), UnreadableReply)
    inside = reply(b'"result":["\xff"' + b',""' * MAX_TOKENS + b"]")
    assert isinstance(decode_reply(inside), Ignored)
    outside = reply(b'"":1,' * MAX_TOKENS + b'"result":NaN')
    assert isinstance(decode_reply(outside), Ignored)


# --- Requests that cannot be carried out ----------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":[1]}', INVALID_PARAMS),
        (b'{"jsonrpc":"2.0","id":1,"method":17}', INVALID_REQUEST),
        (b'{"jsonrpc":"1.0","id":1,"method":"ping"}', INVALID_REQUEST),
        (b'{"id":1,"method":"ping","params":{"a":NaN}}', PARSE_ERROR),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","x":NaN}', PARSE_ERROR),
        (b'{"jsonrpc":"2.0","id":1,"method":["\xff"]}', PARSE_ERROR),
        (b'{"jsonrpc":"2.0","id":1,"method":"a","result":NaN}', PARSE_ERROR),
    ],
)
def test_a_broken_request_is_owed_an_answer(line: bytes, code: int) -> None:
    """JSON-RPC 2.0 §5: the peer waits for one as this side would."""
    message = decode_reply(line)
    assert isinstance(message, Invalid)
    assert (message.failure.id, message.failure.code) == (1, code)


# --- Against the yardstick ------------------------------------------------------------------------


class Members(list[tuple[str, object]]):
    """The members of one object, duplicates kept."""


def yardstick(line: bytes) -> int | str | None:
    """Return the id that the answer in `line` is about, read by the standard library."""
    try:
        value = json.loads(
            line.decode("utf-8", "surrogateescape"), object_pairs_hook=Members, strict=False
        )
    except ValueError:
        return None
    if not isinstance(value, Members):
        return None
    names = [name for name, _ in value]
    if any(re.search("[\ud800-\udfff]", name) for name in names):
        return None
    if any(member is not None for name, member in value if name == "method"):
        return None
    found = [member for name, member in value if name == "id"]
    if len(found) != 1 or isinstance(found[0], bool) or not isinstance(found[0], int | str):
        return None
    if isinstance(found[0], str) and re.search("[\ud800-\udfff]", found[0]):
        return None
    if isinstance(found[0], int) and not -(2**63) <= found[0] < 2**63:
        return None
    versions = {str(member) for name, member in value if name == "jsonrpc"}
    sparse = set(names) <= {"jsonrpc", "id", "result", "error"}
    answers = sparse and ("result" in names or "error" in names)
    return found[0] if versions == {"2.0"} or answers else None


Written = list[tuple[str, object]]

# What makes an object an answer, so that not all of them are something else.
VERSIONS: list[Written] = [[], [("jsonrpc", "2.0")]]
BEGINNINGS: list[Written] = [
    [],
    [("id", 3)],
    [("id", 3), ("result", {})],
    [("id", "a"), ("error", {})],
]
TEXTS = st.text(st.characters(exclude_categories=()), max_size=4)
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | TEXTS
    | st.sampled_from(["2.0", 3, "3", "\udcff", '"', "\\", "}", "]", "{["])
)
VALUES = st.recursive(
    SCALARS,
    lambda values: st.lists(values, max_size=3) | st.dictionaries(TEXTS, values, max_size=3),
    max_leaves=20,
)
MEMBERS = st.tuples(st.sampled_from(["id", "result", "error", "method", "x"]) | TEXTS, VALUES)
OBJECTS = st.builds(
    lambda version, beginning, more: version + beginning + more,
    st.sampled_from(VERSIONS),
    st.sampled_from(BEGINNINGS),
    st.lists(MEMBERS, max_size=4),
)


def write(members: Written, *, ascii_only: bool, space: str) -> bytes:
    """Write an object of members that may come twice; half a surrogate pair as a bad byte."""

    def text(value: object) -> str:
        return json.dumps(value, ensure_ascii=ascii_only)

    inside = f"{space},{space}".join(
        f"{text(name)}{space}:{space}{text(value)}" for name, value in members
    )
    line = f"{{{space}{inside}{space}}}{space}"
    return re.sub("[\ud800-\udc7f\udd00-\udfff]", "\udcfe", line).encode("utf-8", "surrogateescape")


@given(OBJECTS, st.booleans(), st.sampled_from(["", " ", "\t\r"]))
@example([("jsonrpc", "2.0"), ("id", 3), ("result", [[[[[[[1]]]]]]])], True, "")
@example([("id", 3), ("result", float("nan"))], True, "")
@example([("id", 3), ("error", "\udcff")], False, " ")
def test_the_id_of_every_readable_object_is_that_of_the_yardstick(
    members: Written, ascii_only: bool, space: str
) -> None:
    """ours: strict about what is used, lenient about who has to be told."""
    line = write(members, ascii_only=ascii_only, space=space)
    message = decode_reply(line, max_depth=MAX_DEPTH)
    if isinstance(message, Response | Failure):
        assert message == decode(line, max_depth=MAX_DEPTH)
        assert message.id == yardstick(line)
    elif isinstance(message, UnreadableReply):
        assert message.id == yardstick(line)
        assert type(message.id) is type(yardstick(line))
    else:
        assert yardstick(line) is None


@given(OBJECTS, st.integers(0, 200), st.binary(max_size=2), st.integers(0, 2))
def test_a_damaged_line_ends_no_call_but_its_own(
    members: Written, at: int, inserted: bytes, dropped: int
) -> None:
    """ours: whatever is broken in it, the id that is found stands in the text."""
    line = write([("id", 31337), *members], ascii_only=True, space="")
    damaged = line[:at] + inserted.replace(b"\n", b"") + line[at + dropped :]
    message = decode_reply(damaged, max_depth=MAX_DEPTH)
    if isinstance(message, UnreadableReply):
        assert str(message.id).encode() in damaged or isinstance(message.id, str)
        assert damaged.strip(b"\xef\xbb\xbf \t\r").startswith(b"{")
    elif not isinstance(message, Invalid | Ignored):
        assert message == decode(damaged, max_depth=MAX_DEPTH)

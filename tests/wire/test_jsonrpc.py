"""wire/jsonrpc.py: each incoming message is one kind, decided by hand in the tables below."""

import json
import math

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from raxol_mcp.errors import INTERNAL_ERROR, INVALID_PARAMS, INVALID_REQUEST, PARSE_ERROR
from raxol_mcp.wire.jsonrpc import (
    MAX_BATCH_MESSAGES,
    Batch,
    Failure,
    Ignored,
    Incoming,
    Invalid,
    JSONObject,
    Notification,
    Outgoing,
    Request,
    Response,
    UnencodableResult,
    classify,
    decode,
    encode,
    encode_result,
)

ERROR = {"code": -1, "message": "no"}
BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def outcome(message: Incoming) -> object:
    """Shorten a message: its class, or the code and id of the answer it is owed."""
    if isinstance(message, Invalid):
        return (message.failure.code, message.failure.id)
    return type(message)


def taken(value: object) -> object:
    """Classify a value and its JSON text, which must agree, and shorten the outcome."""
    message = classify(value)
    assert decode(json.dumps(value).encode()) == message
    return outcome(message)


def refused(line: bytes) -> tuple[int | str | None, str]:
    """Return id and message of the parse error a line is answered with."""
    message = decode(line)
    assert isinstance(message, Invalid)
    assert message.failure.code == PARSE_ERROR
    return message.failure.id, message.failure.message


# --- Kinds ----------------------------------------------------------------------------------------

NOBODY = (INVALID_REQUEST, None)
ITS_ID = (INVALID_REQUEST, 7)

# All 2^5 sets of members, each of the right type: jsonrpc, id, method, result, error.
KINDS = [
    ("j i m r e", ITS_ID),
    ("j i m r .", ITS_ID),
    ("j i m . e", ITS_ID),
    ("j i m . .", Request),
    ("j i . r e", Failure),
    ("j i . r .", Response),
    ("j i . . e", Failure),
    ("j i . . .", ITS_ID),
    ("j . m r e", NOBODY),
    ("j . m r .", NOBODY),
    ("j . m . e", NOBODY),
    ("j . m . .", Notification),
    ("j . . r e", Ignored),
    ("j . . r .", Ignored),
    ("j . . . e", Ignored),
    ("j . . . .", NOBODY),
    (". i m r e", ITS_ID),
    (". i m r .", ITS_ID),
    (". i m . e", ITS_ID),
    (". i m . .", ITS_ID),
    (". i . r e", Ignored),
    (". i . r .", Ignored),
    (". i . . e", Ignored),
    (". i . . .", NOBODY),
    (". . m r e", NOBODY),
    (". . m r .", NOBODY),
    (". . m . e", NOBODY),
    (". . m . .", NOBODY),
    (". . . r e", Ignored),
    (". . . r .", Ignored),
    (". . . . e", Ignored),
    (". . . . .", NOBODY),
]


def with_members(letters: str) -> JSONObject:
    whole = {"j": ("jsonrpc", "2.0"), "i": ("id", 7), "m": ("method", "ping")}
    whole |= {"r": ("result", {}), "e": ("error", ERROR)}
    return dict(whole[letter] for letter in letters if letter in whole)


def test_the_table_of_kinds_is_complete() -> None:
    """2^5 rows, no two alike."""
    assert len({members for members, _ in KINDS}) == len(KINDS) == 2**5


@pytest.mark.parametrize(("members", "kind"), KINDS)
def test_presence_of_members_decides_the_kind(members: str, kind: object) -> None:
    """JSON-RPC 2.0 §4, §5: a result xor an error, and neither of them beside a method."""
    assert taken(with_members(members)) == kind


@pytest.mark.parametrize(("members", "kind"), KINDS)
@pytest.mark.parametrize("params", [{}, {"a": 1}, None])
def test_good_params_change_no_kind(members: str, kind: object, params: object) -> None:
    """JSON-RPC 2.0 §4.2; null is the same as absent (ours)."""
    assert taken(with_members(members) | {"params": params}) == kind


@pytest.mark.parametrize(("members", "kind"), KINDS)
@pytest.mark.parametrize("params", [[], [1], "x", "", 5, 0, 1.5, True, False])
def test_params_that_are_no_object_come_before_everything_else(
    members: str, kind: object, params: object
) -> None:
    """ours: -32602 before the method is looked at; a notification has no answer."""
    expected = kind
    if ("r" not in members and "e" not in members) or "m" in members:
        expected = (INVALID_PARAMS, 7) if "i" in members else Ignored if "m" in members else NOBODY
    assert taken(with_members(members) | {"params": params}) == expected


# --- Members of the wrong type --------------------------------------------------------------------

IDS = [0, -1, 7, 2**53 + 1, -(2**63), 2**63 - 1, "", "0", "7", "\u00e9", "null"]
NO_IDS = [None, True, False, 1.0, 1.5, [], [1], {}, {"a": 1}]


@pytest.mark.parametrize("id", IDS)
def test_an_id_keeps_its_type_and_every_digit(id: int | str) -> None:
    """https://github.com/modelcontextprotocol/python-sdk/issues/1720."""
    base: JSONObject = {"jsonrpc": "2.0", "id": id}
    for value in (base | {"method": "m"}, base | {"result": 1}, base | {"error": ERROR}, base):
        message = classify(value)
        message = message.failure if isinstance(message, Invalid) else message
        assert isinstance(message, Request | Response | Failure)
        assert (type(message.id), message.id) == (type(id), id)
        assert json.loads(encode(message))["id"] == id


@pytest.mark.parametrize("id", NO_IDS)
def test_a_request_with_any_other_id_is_refused_and_never_a_notification(id: object) -> None:
    """MCP basic §Requests: a string or an integer, never null."""
    assert taken({"jsonrpc": "2.0", "id": id, "method": "m"}) == NOBODY
    assert taken({"jsonrpc": "2.0", "id": id}) == NOBODY
    assert taken({"jsonrpc": "2.0", "id": id, "method": "m", "params": []}) == (
        INVALID_PARAMS,
        None,
    )


@pytest.mark.parametrize("id", NO_IDS)
def test_a_response_with_any_other_id_is_dropped(id: object) -> None:
    """ours: a response is never answered."""
    assert taken({"jsonrpc": "2.0", "id": id, "result": {}}) is Ignored
    assert taken({"jsonrpc": "2.0", "id": id, "error": ERROR}) is Ignored


@pytest.mark.parametrize("id", [2**63, -(2**63) - 1, 2**70])
def test_an_id_outside_64_bits_is_none_where_the_value_was_parsed_elsewhere(id: int) -> None:
    """ours: bytes with such an id are no strict JSON in the first place."""
    assert outcome(classify({"jsonrpc": "2.0", "id": id, "method": "m"})) == NOBODY
    assert refused(b'{"jsonrpc":"2.0","id":%d,"method":"m"}' % id)[0] is None


@pytest.mark.parametrize("method", [None, 7, 0, 1.5, True, False, [], ["tools/list"], {}])
def test_a_method_that_is_no_string_is_refused_and_its_notification_dropped(
    method: object,
) -> None:
    """https://github.com/modelcontextprotocol/go-sdk/issues/976."""
    assert taken({"jsonrpc": "2.0", "id": 7, "method": method}) == ITS_ID
    assert taken({"id": 7, "method": method}) == ITS_ID
    assert taken({"jsonrpc": "2.0", "method": method}) is Ignored


@pytest.mark.parametrize("method", ["", " ", "\u0000", "tools/list"])
def test_any_string_is_a_method(method: str) -> None:
    """ours: whether it is known is decided elsewhere."""
    assert classify({"jsonrpc": "2.0", "id": 7, "method": method}) == Request(7, method)
    assert classify({"jsonrpc": "2.0", "method": method}) == Notification(method)


@pytest.mark.parametrize("version", [None, "1.0", "2", "2.00", " 2.0", "", 2, 2.0, True, ["2.0"]])
def test_any_other_version_is_refused(version: object) -> None:
    """JSON-RPC 2.0 §4: exactly "2.0"."""
    assert taken({"jsonrpc": version, "id": 7, "method": "m"}) == ITS_ID
    assert taken({"jsonrpc": version, "id": 7}) == NOBODY
    assert taken({"jsonrpc": version, "method": "m"}) == NOBODY
    assert taken({"jsonrpc": version, "id": 7, "result": {}}) is Ignored


@pytest.mark.parametrize("result", [None, False, 0, "", [], {}, 1.5, "x", [None], {"a": None}])
def test_any_result_is_a_result_null_and_falsy_ones_too(result: object) -> None:
    """JSON-RPC 2.0 §5."""
    value = {"jsonrpc": "2.0", "id": 7, "result": result}
    assert classify(value) == Response(7, result)
    assert decode(json.dumps(value).encode()) == Response(7, result)
    # A null method is an absent one: some writers spell out every member.
    assert classify(value | {"method": None}) == Response(7, result)


@pytest.mark.parametrize(
    ("error", "failure"),
    [
        (ERROR, Failure(7, -1, "no")),
        (ERROR | {"data": None}, Failure(7, -1, "no")),
        (ERROR | {"data": {"a": 1}}, Failure(7, -1, "no", {"a": 1})),
        (ERROR | {"data": "text"}, Failure(7, -1, "no", "text")),
        (ERROR | {"data": 0}, Failure(7, -1, "no", 0)),
        ({"code": 0, "message": ""}, Failure(7, 0, "")),
        ({"code": True, "message": "no"}, Failure(7, INTERNAL_ERROR, "no")),
        ({"code": "-1", "message": "no"}, Failure(7, INTERNAL_ERROR, "no")),
        ({"code": 1.5, "message": "no"}, Failure(7, INTERNAL_ERROR, "no")),
        ({"code": -1, "message": 5}, Failure(7, -1, "malformed error")),
        ({}, Failure(7, INTERNAL_ERROR, "malformed error")),
        (None, Failure(7, INTERNAL_ERROR, "malformed error")),
        ("no", Failure(7, INTERNAL_ERROR, "malformed error")),
        (0, Failure(7, INTERNAL_ERROR, "malformed error")),
        ([], Failure(7, INTERNAL_ERROR, "malformed error")),
    ],
)
def test_a_broken_error_is_still_a_failure(error: object, failure: Failure) -> None:
    """ours: whoever waits for the answer learns that it failed, also beside a result."""
    assert classify({"jsonrpc": "2.0", "id": 7, "error": error}) == failure
    assert classify({"jsonrpc": "2.0", "id": 7, "result": {}, "error": error}) == failure


@pytest.mark.parametrize("value", [None, True, 0, 1, 1.5, "", "ping", {}, {"a": 1}])
def test_what_is_no_message_at_all_is_refused(value: object) -> None:
    """JSON-RPC 2.0 §5.1."""
    assert taken(value) == NOBODY


def test_a_request_and_a_notification_carry_their_params() -> None:
    """JSON-RPC 2.0 §4."""
    line = b'{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"x"},"extra":1}'
    assert decode(line) == Request("a", "tools/call", {"name": "x"})
    line = b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":0}}'
    assert decode(line) == Notification("notifications/cancelled", {"requestId": 0})


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ({}, "Invalid request: a message is an object with a method"),
        ({"id": 7, "method": "m"}, 'Invalid request: jsonrpc must be "2.0"'),
        ({"jsonrpc": "2.0", "id": 7}, "Missing method"),
        ({"jsonrpc": "2.0", "id": 7, "method": None}, "Missing method"),
        ({"jsonrpc": "2.0", "id": 7, "method": 5}, "Invalid request: method must be a string"),
        (
            {"jsonrpc": "2.0", "id": None, "method": "m"},
            "Invalid request: id must be a string or a 64 bit integer",
        ),
        (
            {"jsonrpc": "2.0", "id": 7, "method": "m", "result": 1},
            "Invalid request: a method together with a result or an error",
        ),
        (
            {"jsonrpc": "2.0", "id": 7, "method": 5, "params": []},
            "Invalid params: params must be an object",
        ),
        ([], "Invalid request: empty batch"),
    ],
)
def test_the_answer_says_what_was_wrong(value: object, says: str) -> None:
    """JSON-RPC 2.0 §5.1."""
    message = classify(value)
    assert isinstance(message, Invalid)
    assert message.failure.message == says


@pytest.mark.parametrize(
    "line",
    [
        '{"JSONRPC":"2.0","ID":2,"METHOD":"tools/list"}',
        '{"jsonrpc":"2.0","Id":3,"Method":"tools/call"}',
        '{"jsonrpc":"2.0","id\\u0000":3,"method\\u0000":"m"}',
        '{"jsonrpc":"2.0","\u0131d":3,"metho\u0501":"m"}',
    ],
)
def test_a_member_that_looks_like_one_of_ours_is_not_ours(line: str) -> None:
    """JSON-RPC 2.0 §4; https://github.com/advisories/GHSA-wvj2-96wp-fq3f."""
    assert outcome(decode(line.encode())) == NOBODY


@pytest.mark.parametrize(
    "twin", ["Method", "METHOD", "method\\u0000", " method", "metho\u0501", "m\u0435thod"]
)
def test_a_twin_of_a_member_has_no_effect(twin: str) -> None:
    """https://github.com/modelcontextprotocol/go-sdk/issues/805."""
    for members in (f'"method":"a","{twin}":"b"', f'"{twin}":"b","method":"a"'):
        line = f'{{"jsonrpc":"2.0","id":1,{members}}}'
        assert decode(line.encode()) == Request(1, "a")


# --- Batches --------------------------------------------------------------------------------------


def test_each_message_of_a_batch_is_classified() -> None:
    """MCP 2025-03-26 basic §Batching; JSON-RPC 2.0 §6: an array inside is no message."""
    line = (
        b'[{"jsonrpc":"2.0","id":1,"method":"a"},{"jsonrpc":"2.0","method":"b"},'
        b'{"jsonrpc":"2.0","id":2,"result":null},{"jsonrpc":"2.0","result":1},1,[],[{}]]'
    )
    message = decode(line)
    assert message == classify(json.loads(line))
    assert isinstance(message, Batch)
    kinds = [Request, Notification, Response, Ignored, NOBODY, NOBODY, NOBODY]
    assert [outcome(item) for item in message.messages] == kinds


def test_an_empty_batch_is_refused() -> None:
    """JSON-RPC 2.0 §6."""
    assert taken([]) == NOBODY


def test_a_batch_holds_so_many_messages_and_no_more() -> None:
    """ours: every item may be owed an answer that is far longer than itself."""
    message = classify([1] * MAX_BATCH_MESSAGES)
    assert isinstance(message, Batch)
    assert len(message.messages) == MAX_BATCH_MESSAGES
    assert taken([1] * (MAX_BATCH_MESSAGES + 1)) == NOBODY


# --- Lines ----------------------------------------------------------------------------------------

PING = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'


@pytest.mark.parametrize(
    "line",
    [
        PING,
        PING + b"\r",
        b" \t" + PING + b" \r\n",
        BYTE_ORDER_MARK + PING,
        BYTE_ORDER_MARK + b"  " + PING + b"\r",
        PING.replace(b":", b" : ").replace(b",", b"\t,\n"),
        PING.replace(b"method", b"\\u006dethod"),
    ],
)
def test_what_stands_around_a_message_does_not_matter(line: bytes) -> None:
    """RFC 8259 §2, §8.1; https://github.com/modelcontextprotocol/go-sdk/issues/664."""
    assert decode(line) == Request(1, "ping")


@pytest.mark.parametrize("line", [b"", b"\r", b"   \t ", b"\n", BYTE_ORDER_MARK + b"\r"])
def test_a_blank_line_is_ignored(line: bytes) -> None:
    """https://github.com/modelcontextprotocol/python-sdk/issues/2066."""
    assert decode(line) == Ignored("blank line")


def test_a_byte_order_mark_inside_a_string_is_kept() -> None:
    """RFC 8259 §8.1 speaks of the beginning of a text alone."""
    line = '{"jsonrpc":"2.0","id":1,"method":"m","params":{"text":"\ufeffkeep"}}'
    assert decode(line.encode()) == Request(1, "m", {"text": "\ufeffkeep"})


@pytest.mark.parametrize(
    "line",
    [b"{this is not json", PING[:-1], b"}{", b"\x0b", b"\xa0", BYTE_ORDER_MARK * 2 + PING, b"\x00"],
)
def test_a_line_that_is_no_json_is_answered_with_a_parse_error(line: bytes) -> None:
    """https://github.com/modelcontextprotocol/servers/issues/3359."""
    id, says = refused(line)
    assert id is None
    assert says.startswith("Parse error: ")


@pytest.mark.parametrize(
    ("line", "id"),
    [
        ('{"jsonrpc":"2.0","id":9,"method":"m","params":{"n":NaN}}', 9),
        ('{"jsonrpc":"2.0","id":"a","method":"m","params":{"n":1e999}}', "a"),
        ('{"jsonrpc":"2.0","id":0,"method":"m","params":{"text":"\\ud83d"}}', 0),
        ('{"jsonrpc":"2.0","id":"","method":"m","params":{"a":1,"a":2}}', ""),
        ('{"jsonrpc":"2.0","id":1,"method":"tools/list","method":"tools/call"}', 1),
        ('{"jsonrpc":"2.0","id":1,"method":"m","params":{"n":9223372036854775808}}', 1),
        ('{"jsonrpc":"2.0","id":1,"method":"m","params":{"id":2,"text":"\t"}}', 1),
        # Ids that cannot be told for sure, or not be written back as they came.
        ('{"jsonrpc":"2.0","id":1,"id":2,"method":"m"}', None),
        ('{"jsonrpc":"2.0","id":1,"id":1,"method":"m"}', None),
        ('{"jsonrpc":"2.0","id":9223372036854775808,"method":"m"}', None),
        ('{"jsonrpc":"2.0","id":"\\ud83d","method":"m"}', None),
        ('{"jsonrpc":"2.0","id":NaN,"method":"m"}', None),
        ('{"jsonrpc":"2.0","id":true,"method":"m","params":{"n":NaN}}', None),
        ('{"jsonrpc":"2.0","id":null,"method":"m","params":{"n":NaN}}', None),
        # No requests.
        ('{"jsonrpc":"2.0","method":"m","params":{"n":NaN}}', None),
        ('{"jsonrpc":"2.0","id":1,"result":NaN}', None),
        ('{"jsonrpc":"2.0","id":1,"method":5,"params":{"n":NaN}}', None),
        ('{"jsonrpc":"2.0","id":1,"method":"m","method":5}', None),
        ('{"jsonrpc":"2.0","Id":1,"method":"m","params":{"n":NaN}}', None),
        ('[{"jsonrpc":"2.0","id":1,"method":"m","params":{"n":NaN}}]', None),
        ('{"params":{"id":1,"method":"m","n":NaN}}', None),
    ],
)
def test_the_id_of_an_unreadable_request_is_echoed_if_it_is_beyond_doubt(
    line: str, id: int | str | None
) -> None:
    """JSON-RPC 2.0 §5: null only if there was an error in detecting the id."""
    found, says = refused(line.encode())
    assert (type(found), found) == (type(id), id)
    json.loads(encode(Failure(found, PARSE_ERROR, says)))


@pytest.mark.parametrize("bad", [b"\xff", b"\xed\xa0\x80", b"\xc0\x80"])
def test_bytes_that_are_no_utf_8_leave_the_id_readable_but_not_inside_it(bad: bytes) -> None:
    """MCP basic/transports: messages are UTF-8, whatever the locale."""
    start = b'{"jsonrpc":"2.0","method":"m",'
    assert refused(start + b'"id":1,"params":{"a":"' + bad + b'"}}')[0] == 1
    assert refused(start + b'"id":"' + bad + b'"}')[0] is None


def test_the_id_of_a_long_unreadable_request_is_not_looked_for() -> None:
    """ours: up to 64 KiB."""
    line = b'{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":NaN,"b":"%s"}}'
    assert refused(line % b"")[0] == 1
    assert refused(line % (b"x" * 64 * 1024))[0] is None


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (b'{"method":"a","method":"b"}', 'Parse error: duplicate member "method"'),
        (b'{"id":' + b"[" * 200, "Parse error: nested more than 128 levels deep"),
        (b'{"id":1e999}', "Parse error: a number is out of range"),
        (b'{"id":"\\ud83d"}', "Parse error: half of a surrogate pair is missing"),
    ],
)
def test_the_parse_error_says_what_was_wrong(line: bytes, says: str) -> None:
    """JSON-RPC 2.0 §5.1."""
    assert refused(line) == (None, says)


@pytest.mark.parametrize("levels", [32, 126])
def test_a_nested_request_is_read(levels: int) -> None:
    """https://github.com/modelcontextprotocol/servers/issues/4213."""
    line = b'{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":%s}}'
    nested = b"[" * levels + b"]" * levels
    assert isinstance(decode(line % nested), Request)


@pytest.mark.parametrize("levels", [127, 1_000, 100_000])
def test_a_request_nested_too_deep_is_refused(levels: int) -> None:
    """https://github.com/modelcontextprotocol/servers/issues/4213."""
    line = b'{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":%s}}'
    nested = b"[" * levels + b"]" * levels
    assert refused(line % nested) == (None, "Parse error: nested more than 128 levels deep")
    assert isinstance(decode(line % nested, max_depth=levels + 1), Invalid)


@given(
    st.binary(max_size=40)
    | st.lists(
        st.sampled_from(
            [b'"id"', b'"method"', b'"jsonrpc"', b'"2.0"', b":", b",", b"{", b"}", b"[", b"1", b" "]
        ),
        max_size=20,
    ).map(b"".join)
)
@example(b"[" * 1_000_000)
def test_no_line_raises_and_every_answer_can_be_written(line: bytes) -> None:
    """ours: one bad line must not end the connection of its neighbours."""
    message = decode(line)
    if isinstance(message, Invalid):
        json.loads(encode(message.failure))


# --- Writing --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("message", "line"),
    [
        (Request(1, "ping"), b'{"jsonrpc":"2.0","id":1,"method":"ping"}'),
        (Request("", "m", {}), b'{"jsonrpc":"2.0","id":"","method":"m","params":{}}'),
        (Notification("n"), b'{"jsonrpc":"2.0","method":"n"}'),
        (Notification("n", {"a": 1}), b'{"jsonrpc":"2.0","method":"n","params":{"a":1}}'),
        (Response(0, None), b'{"jsonrpc":"2.0","id":0,"result":null}'),
        (Response("0", {"a": []}), b'{"jsonrpc":"2.0","id":"0","result":{"a":[]}}'),
        (
            Failure(None, -32700, "Parse error"),
            b'{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error"}}',
        ),
        (
            Failure(1, -31001, "no", {"error": "x"}),
            b'{"jsonrpc":"2.0","id":1,"error":{"code":-31001,"message":"no","data":{"error":"x"}}}',
        ),
        (
            Failure(1, -1, "no", 0),
            b'{"jsonrpc":"2.0","id":1,"error":{"code":-1,"message":"no","data":0}}',
        ),
    ],
)
def test_a_message_is_written_compactly_and_in_order(message: Outgoing, line: bytes) -> None:
    """JSON-RPC 2.0 §4, §5: a null result is there, absent params and data are not."""
    assert encode(message) == line


def test_an_encoded_result_is_copied() -> None:
    """ours: a result is encoded once, where a mistake in it can still be answered."""
    raw = encode_result({"text": "a\nb"}, max_bytes=100)
    assert encode(Response(1, raw)) == b'{"jsonrpc":"2.0","id":1,"result":{"text":"a\\nb"}}'


@pytest.mark.parametrize("raw", [b'{\n\t"a":\r\n1}', b"[\r1]", b"[1\n]"])
def test_a_message_is_one_line_even_around_a_raw_that_is_not(raw: bytes) -> None:
    """MCP basic/transports §stdio: messages hold no newline."""
    line = encode(Response(1, msgspec.Raw(raw)))
    assert len(line.splitlines()) == 1
    assert json.loads(line)["result"] == json.loads(raw)


@pytest.mark.parametrize("value", ["\ud800", object(), {None: 1}])
def test_a_message_that_cannot_be_written_says_so(value: object) -> None:
    """RFC 8259 §8.2; https://github.com/modelcontextprotocol/python-sdk/issues/3385."""
    for message in (Notification("n", {"a": value}), Failure(1, 1, "m", value), Response(1, value)):
        with pytest.raises(UnencodableResult):
            encode(message)


def test_a_number_that_is_none_is_written_as_null() -> None:
    """RFC 8259 §6: never a bare NaN."""
    line = encode(Notification("notifications/progress", {"progress": math.nan}))
    assert json.loads(line)["params"] == {"progress": None}


ids = st.integers(-(2**63), 2**63 - 1) | st.text()
scalars = st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text()
values = st.recursive(
    scalars | st.floats(allow_nan=False, allow_infinity=False),
    lambda items: st.lists(items, max_size=3) | st.dictionaries(st.text(), items, max_size=3),
    max_leaves=8,
)
params = st.none() | st.dictionaries(st.text(), values, max_size=3)
outgoing: st.SearchStrategy[Outgoing] = (
    st.builds(Request, ids, st.text(), params)
    | st.builds(Notification, st.text(), params)
    | st.builds(Response, ids, values)
    | st.builds(Failure, ids, st.integers(-(2**63), 2**63 - 1), st.text(), values)
)


@given(outgoing)
@example(Response("\u2028\u2029\x85", {"\x0b": "\x0c\x1c"}))
def test_what_is_written_is_read_back_the_same(message: Outgoing) -> None:
    """RFC 8259; also by a strict reader that is not ours, and as one line."""
    line = encode(message)
    assert repr(decode(line)) == repr(message)
    assert json.loads(line)["jsonrpc"] == "2.0"
    assert not {0x0A, 0x0D} & set(line)

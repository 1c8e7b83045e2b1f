"""wire/headers.py: headers say what the body says, or the request is refused.

The sections are those of MCP 2026-07-28 basic/transports/streamable-http.
"""

import json
from base64 import b64encode
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from raxol_mcp.errors import HEADER_MISMATCH
from raxol_mcp.wire.headers import (
    MAX_MIRRORED_INTEGER,
    Headers,
    Mirror,
    annotation_problems,
    decode_value,
    encode_value,
    mirrored,
    mirrors_of,
    params_problem,
    plain_text,
    standard_problem,
    version_problem,
)
from raxol_mcp.wire.jsonrpc import Failure, JSONObject, Request
from raxol_mcp.wire.meta import META_VERSION, STATELESS_VERSION

TEXT = st.text(st.characters(exclude_categories=["Cs"]))
SCHEMA: JSONObject = {
    "type": "object",
    "properties": {
        "region": {"type": "string", "x-mcp-header": "Region"},
        "count": {"type": "integer", "x-mcp-header": "Count"},
        "flag": {"type": "boolean", "x-mcp-header": "Flag"},
        "deep": {
            "type": "object",
            "properties": {"er": {"type": "string", "x-mcp-header": "deep-er"}},
        },
        "plain": {"type": "string"},
    },
}
MIRRORS = mirrors_of(SCHEMA)


def headers(*pairs: tuple[str, str | bytes]) -> Headers:
    return Headers(
        (name.encode(), value if isinstance(value, bytes) else value.encode())
        for name, value in pairs
    )


def request(
    method: str = "tools/call", *, version: object = STATELESS_VERSION, **params: object
) -> Request:
    return Request("r1", method, {**params, "_meta": {META_VERSION: version}})


def call(**arguments: object) -> Request:
    return request(name="echo", arguments=arguments)


def reason(problem: Failure | None) -> str | None:
    """Return what a refusal says; the rest of it is always the same."""
    if problem is None:
        return None
    prefix = "Header mismatch: "
    assert problem == Failure("r1", HEADER_MISMATCH, problem.message)
    assert problem.message.startswith(prefix)
    return problem.message.removeprefix(prefix)


def wrapped(payload: str) -> str:
    return f"=?base64?{payload}?="


def b64(text: str) -> str:
    return b64encode(text.encode()).decode()


# -- reading


def test_names_are_found_in_any_case_and_space_is_no_part_of_a_value() -> None:
    """§Case Sensitivity; RFC 9110 §5.5."""
    found = headers(("MCP-Name", "\t  echo \t"), ("X", "a b"))
    assert found.get(b"mcp-name") == b"echo"
    assert found.all(b"mcp-name") == [b"echo"]
    assert found.get(b"x") == b"a b"
    assert not found.repeats(b"mcp-name")


def test_an_absent_name_has_no_values() -> None:
    found = headers()
    assert (found.get(b"x"), found.all(b"x"), found.repeats(b"x")) == (None, [], False)


def test_every_value_of_a_repeated_name_is_kept_in_order() -> None:
    """RFC 9110 §5.3."""
    found = headers(("a", "1"), ("b", "x"), ("A", " 2"), ("a", "1"))
    assert found.all(b"a") == [b"1", b"2", b"1"]
    assert found.get(b"a") == b"1"
    assert found.repeats(b"a")


@pytest.mark.parametrize("space", [b"\n", b"\r", b"\x0b", b"\xa0", b"\0"])
def test_only_space_and_tab_are_trimmed(space: bytes) -> None:
    """RFC 9110 §5.6.3: OWS."""
    assert headers(("a", space + b"x")).get(b"a") == space + b"x"


# -- values


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (b"", ""),
        (b"us-west1", "us-west1"),
        (b"a b\tc~!", "a b\tc~!"),
        (b"caf\xc3\xa9", None),
        (b"\x80", None),
        (b"a\nb", None),
        (b"a\x00", None),
        (b"\x7f", None),
        (b"a\n", None),
    ],
)
def test_a_plain_value_is_visible_ascii_space_and_tab(value: bytes, text: str | None) -> None:
    """§Value Encoding; RFC 9110 §5.5."""
    assert plain_text(value) == text
    assert decode_value(value) == text


@pytest.mark.parametrize(
    ("original", "value"),
    [
        ("us-west1", b"us-west1"),
        ("Hello, 世界", b"=?base64?SGVsbG8sIOS4lueVjA==?="),
        (" padded ", b"=?base64?IHBhZGRlZCA=?="),
        ("line1\nline2", b"=?base64?bGluZTEKbGluZTI=?="),
        ("=?base64?literal?=", b"=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="),
    ],
)
def test_the_examples_of_the_specification(original: str, value: bytes) -> None:
    """§Value Encoding, encoding examples."""
    assert encode_value(original) == value
    assert decode_value(value) == original


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (wrapped("SGVsbG8="), "Hello"),
        (wrapped(b64("mem://测试")), "mem://测试"),
        (wrapped(""), ""),
        (wrapped(b64("a\0\r\nb")), "a\0\r\nb"),
        # Padding, alphabet, spelling, UTF-8.
        (wrapped("SGVsbG8"), None),
        (wrapped("SGVsbG8=="), None),
        (wrapped("SGVsbG8==="), None),
        (wrapped("SGVs!!!bG8="), None),
        (wrapped("SGVs bG8="), None),
        (wrapped("SGVsbG9="), None),
        (wrapped("=SGVsbG8"), None),
        (wrapped("SGVs=bG8="), None),
        (wrapped("_-8="), None),
        (wrapped("/+8="), None),
        (wrapped("7aCA"), None),
        (wrapped("?=?="), None),
        (wrapped("!!!"), None),
        (wrapped("a"), None),
        # One marker, or one that is spelt otherwise: the text is itself.
        ("SGVsbG8=", "SGVsbG8="),
        ("=?base64?SGVsbG8=", "=?base64?SGVsbG8="),
        ("SGVsbG8=?=", "SGVsbG8=?="),
        ("=?BASE64?SGVsbG8=?=", "=?BASE64?SGVsbG8=?="),
        ("=?Base64?SGVsbG8=?=", "=?Base64?SGVsbG8=?="),
        ("x=?base64?SGVsbG8=?=", "x=?base64?SGVsbG8=?="),
        ("=?base64?SGVsbG8=?=x", "=?base64?SGVsbG8=?=x"),
        ("=?base64?=", "=?base64?="),
        ("=?base64?", "=?base64?"),
    ],
)
def test_a_wrapped_value_has_exactly_these_markers_and_one_spelling(
    value: str, text: str | None
) -> None:
    """§Value Encoding: the markers are case-sensitive; a server decodes before it compares."""
    assert decode_value(value.encode()) == text


@given(TEXT)
@example("")
@example(" ")
@example("\t")
@example("a\tb")
@example("=?base64??=")
@example("=?base64?=")
@example("=?base64?a")
@example("a?=")
@example("\x7f")
@example("\u00a0a")
@example("\U0001f600")
def test_every_text_comes_back(text: str) -> None:
    """§Value Encoding: the recipient can recover the exact value."""
    value = encode_value(text)
    assert decode_value(value) == text
    assert value == value.strip()
    assert all(0x20 <= byte < 0x7F for byte in value)


@given(TEXT)
def test_a_value_that_need_not_be_wrapped_may_be(text: str) -> None:
    """§Server Validation: decoded, then compared."""
    assert decode_value(wrapped(b64(text)).encode()) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(True, b"true"), (False, b"false"), (42, b"42"), (-7, b"-7"), (42.0, b"42"), (1.5, b"1.5")],
)
def test_what_is_no_string_is_written_as_one(value: float, text: bytes) -> None:
    """§Value Encoding, type conversion."""
    assert encode_value(value) == text


# -- MCP-Protocol-Version

VERSION = "MCP-Protocol-Version"


@pytest.mark.parametrize(
    ("pairs", "expected"),
    [
        ([(VERSION, STATELESS_VERSION)], None),
        ([(VERSION.lower(), f" \t{STATELESS_VERSION}\t ")], None),
        ([], f"{VERSION} is missing"),
        ([(VERSION, STATELESS_VERSION)] * 2, f"{VERSION} is there more than once"),
        ([(VERSION, "2025-11-25")], f"{VERSION} is not the version in _meta"),
        ([(VERSION, "")], f"{VERSION} is not the version in _meta"),
        ([(VERSION, f"{STATELESS_VERSION},{STATELESS_VERSION}")], "is not the version"),
        ([(VERSION, wrapped(b64(STATELESS_VERSION)))], "is not the version"),
        ([(VERSION, "é")], f"{VERSION} has a character that a header must not have"),
        ([("MCP_Protocol_Version", STATELESS_VERSION)], f"{VERSION} is missing"),
    ],
)
def test_the_version_is_there_once_and_the_same(
    pairs: list[tuple[str, str]], expected: str | None
) -> None:
    """§Protocol Version Header; https://github.com/modelcontextprotocol/typescript-sdk/issues/2590."""
    found = reason(version_problem(headers(*pairs), call()))
    assert (found is None) if expected is None else (found is not None and expected in found)


@pytest.mark.parametrize("version", [5, None, ["2026-07-28"]])
def test_a_version_that_is_no_string_is_left_to_another_check(version: object) -> None:
    """§Server Validation comes after the keys of `_meta`, which are -32602."""
    assert version_problem(headers((VERSION, "5")), request(version=version)) is None


def test_a_body_without_metadata_is_left_to_another_check() -> None:
    assert version_problem(headers(), Request(1, "tools/list")) is None
    assert version_problem(headers(), Request(1, "tools/list", {"_meta": {}})) is None


# -- Mcp-Method and Mcp-Name


@pytest.mark.parametrize(
    ("pairs", "expected"),
    [
        ([("Mcp-Method", "tools/list")], None),
        ([("mcp-method", "tools/list ")], None),
        ([("MCP-METHOD", "\ttools/list")], None),
        ([("Mcp-Method", "tools/list"), ("Mcp-Name", "anything")], None),
        ([], "Mcp-Method is missing"),
        ([("Mcp-Method", "prompts/list")], "Mcp-Method is not the method"),
        ([("Mcp-Method", "TOOLS/LIST")], "Mcp-Method is not the method"),
        ([("Mcp-Method", "")], "Mcp-Method is not the method"),
        ([("Mcp-Method", wrapped(b64("tools/list")))], "Mcp-Method is not the method"),
        ([("Mcp-Method", "tools/list")] * 2, "Mcp-Method is there more than once"),
        (
            [("Mcp-Method", "tools/list"), ("mcp-method", "tools/call")],
            "Mcp-Method is there more than once",
        ),
        (
            [("Mcp-Method", b"tools/list\x80")],
            "Mcp-Method has a character that a header must not have",
        ),
    ],
)
def test_the_method_is_there_once_and_the_same(
    pairs: list[tuple[str, str]], expected: str | None
) -> None:
    """§Standard Request Headers, §Case Sensitivity."""
    assert reason(standard_problem(headers(*pairs), Request("r1", "tools/list"))) == expected


@pytest.mark.parametrize(
    ("method", "member"),
    [("tools/call", "name"), ("prompts/get", "name"), ("resources/read", "uri")],
)
@pytest.mark.parametrize(
    ("name", "values", "expected"),
    [
        ("echo", ["echo"], None),
        ("echo", ["\techo\t"], None),
        ("echo", [wrapped("ZWNobw==")], None),
        ("mem://测试", [wrapped("bWVtOi8v5rWL6K+V")], None),
        ("", [""], None),
        (" a", [wrapped(b64(" a"))], None),
        ("=?BASE64?ZWNobw==?=", ["=?BASE64?ZWNobw==?="], None),
        ("echo", [], "Mcp-Name is missing"),
        ("", [], "Mcp-Name is missing"),
        ("echo", ["Echo"], "Mcp-Name is not the value of {}"),
        ("echo", ["echo2"], "Mcp-Name is not the value of {}"),
        ("echo", [""], "Mcp-Name is not the value of {}"),
        ("echo", ["echo, echo"], "Mcp-Name is not the value of {}"),
        ("mem://测试", ["=?base64?bWVtOi8v5rWL6K+V"], "Mcp-Name is not the value of {}"),
        ("mem://测试", ["=?BASE64?bWVtOi8v5rWL6K+V?="], "Mcp-Name is not the value of {}"),
        ("mem://测试", [wrapped("!!!")], "Mcp-Name is not well formed"),
        ("mem://测试", ["mem://测试"], "Mcp-Name is not well formed"),
        ("echo", ["echo", "echo"], "Mcp-Name is there more than once"),
        (None, ["echo"], "Mcp-Name has no value in {} to mirror"),
        (5, ["5"], "Mcp-Name has no value in {} to mirror"),
        (None, [], None),
        (5, [], None),
    ],
)
def test_the_name_is_decoded_and_then_compared(
    method: str, member: str, name: object, values: list[str], expected: str | None
) -> None:
    """§Standard Request Headers; https://github.com/modelcontextprotocol/go-sdk/issues/1243."""
    sent = headers(("Mcp-Method", method), *(("Mcp-Name", value) for value in values))
    params: dict[str, Any] = {} if name is None else {member: name}
    found = reason(standard_problem(sent, request(method, **params)))
    assert found == (expected and expected.format(member))


def test_a_call_without_params_names_nothing() -> None:
    sent = headers(("Mcp-Method", "tools/call"))
    assert standard_problem(sent, Request("r1", "tools/call")) is None


# -- Mcp-Param-*


@pytest.mark.parametrize(
    ("arguments", "pairs", "expected"),
    [
        ({}, [], None),
        ({"plain": "x"}, [], None),
        ({"region": None}, [], None),
        ({"region": "eu"}, [("Region", "eu")], None),
        ({"region": "eu"}, [("REGION", "eu")], None),
        ({"region": "eu"}, [("Region", wrapped(b64("eu")))], None),
        ({"region": ""}, [("Region", "")], None),
        ({"region": "a  b"}, [("Region", "a  b")], None),
        ({"region": "世界"}, [("Region", wrapped(b64("世界")))], None),
        ({"count": 0}, [("Count", "0")], None),
        ({"count": 0}, [("Count", "-0")], None),
        ({"count": 42}, [("Count", "42")], None),
        ({"count": 42}, [("Count", "42.0")], None),
        ({"count": 42.0}, [("Count", "42")], None),
        ({"count": 1.5}, [("Count", "1.5")], None),  # the check of the arguments refuses it
        ({"count": -7}, [("Count", "-7.000")], None),
        ({"count": MAX_MIRRORED_INTEGER}, [("Count", str(MAX_MIRRORED_INTEGER))], None),
        ({"flag": False}, [("Flag", "false")], None),
        ({"flag": True}, [("Flag", wrapped(b64("true")))], None),
        ({"deep": {"er": "x"}}, [("Deep-Er", "x")], None),
        ({"deep": {}}, [], None),
        ({"deep": 5}, [], None),
        ({}, [("Unknown", "x"), ("Unknown", "é")], None),
        # Types the schema does not allow: the check of the arguments says so better.
        ({"region": 5}, [("Region", "5")], None),
        ({"region": ["eu"]}, [], None),
        ({"region": {"a": 1}}, [], None),
        # Without a header, or a header without a value.
        ({"region": "eu"}, [], "Region is missing"),
        ({"region": ""}, [], "Region is missing"),
        ({"count": 0}, [], "Count is missing"),
        ({"flag": False}, [], "Flag is missing"),
        ({"deep": {"er": "x"}}, [], "deep-er is missing"),
        ({}, [("Region", "eu")], "Region has no value in arguments.region to mirror"),
        ({}, [("Region", "")], "Region has no value in arguments.region to mirror"),
        ({"region": None}, [("Region", "null")], "Region has no value in arguments.region"),
        ({"region": ["eu"]}, [("Region", "eu")], "Region has no value in arguments.region"),
        ({"deep": "x"}, [("Deep-er", "x")], "deep-er has no value in arguments.deep.er"),
        # Another value.
        ({"region": "eu"}, [("Region", "us")], "Region is not the value of arguments.region"),
        ({"region": "eu"}, [("Region", "EU")], "Region is not the value of arguments.region"),
        ({"region": "42"}, [("Region", "42.0")], "Region is not the value"),
        ({"region": "eu"}, [("Region", "eu")] * 2, "Region is there more than once"),
        ({"region": "eu"}, [("Region", "eu"), ("rEGION", "us")], "Region is there more than once"),
        ({"region": "eu"}, [("Region", b"e\xfc")], "Region is not well formed"),
        ({"region": "Hello"}, [("Region", wrapped("SGVsbG8"))], "Region is not well formed"),
        ({"region": "Hello"}, [("Region", wrapped("SGVs!!!bG8="))], "Region is not well formed"),
        ({"count": 42}, [("Count", "43")], "Count is not the value"),
        ({"count": 42}, [("Count", "42.5")], "Count is not the value"),
        ({"count": 42}, [("Count", "42.0000000000000001")], "Count is not the value"),
        ({"count": 42}, [("Count", "042")], "Count is not the value"),
        ({"count": 42}, [("Count", "+42")], "Count is not the value"),
        ({"count": 42}, [("Count", "4.2e1")], "Count is not the value"),
        ({"count": 42}, [("Count", "0x2a")], "Count is not the value"),
        ({"count": 42}, [("Count", "42.")], "Count is not the value"),
        ({"count": 42}, [("Count", "4_2")], "Count is not the value"),
        ({"count": 42}, [("Count", "")], "Count is not the value"),
        ({"count": 42}, [("Count", wrapped(b64("٤٢")))], "Count is not the value"),
        ({"count": 1}, [("Count", "true")], "Count is not the value"),
        ({"flag": True}, [("Flag", "1")], "Flag is not the value"),
        ({"flag": True}, [("Flag", "True")], "Flag is not the value"),
        ({"flag": False}, [("Flag", "")], "Flag is not the value"),
        ({"count": MAX_MIRRORED_INTEGER}, [("Count", "9007199254740990.9")], "is not the value"),
        ({"count": 2**53}, [("Count", str(2**53))], "the integer in arguments.count is too large"),
        ({"count": -(2**53)}, [("Count", "0")], "the integer in arguments.count is too large"),
    ],
)
def test_annotated_arguments_are_mirrored_exactly(
    arguments: JSONObject, pairs: list[tuple[str, str | bytes]], expected: str | None
) -> None:
    """§Server Behavior for Custom Headers, §Server Validation."""
    sent = headers(*((f"Mcp-Param-{name}", value) for name, value in pairs))
    found = reason(params_problem(sent, call(**arguments), MIRRORS))
    assert (found is None) if expected is None else (found is not None and expected in found)


@pytest.mark.parametrize("params", [None, {}, {"arguments": None}, {"arguments": [1]}])
def test_arguments_that_are_none_have_no_values(params: JSONObject | None) -> None:
    """§Server Behavior for Custom Headers: the parameter is not in the arguments."""
    body = Request("r1", "tools/call", params)
    assert params_problem(headers(), body, MIRRORS) is None
    assert params_problem(headers(("mcp-param-region", "x")), body, MIRRORS) is not None


def test_a_tool_without_annotations_looks_at_no_header() -> None:
    """§Server Behavior for Custom Headers: what is not recognized is ignored."""
    assert params_problem(headers(("Mcp-Param-Region", "us")), call(region="eu"), ()) is None


# -- both ways

VALUES = st.fixed_dictionaries(
    {},
    optional={
        "region": TEXT,
        "count": st.integers(-MAX_MIRRORED_INTEGER, MAX_MIRRORED_INTEGER),
        "flag": st.booleans() | st.none(),
        "deep": st.fixed_dictionaries({}, optional={"er": TEXT | st.lists(TEXT)}) | st.none(),
    },
)


@given(TEXT, VALUES, st.sampled_from(["tools/call", "prompts/get", "tools/list"]))
def test_what_a_client_mirrors_is_accepted(name: str, arguments: JSONObject, method: str) -> None:
    """§Client Behavior."""
    sent = request(method, name=name, arguments=arguments)
    received = Headers(mirrored(sent, MIRRORS))
    assert version_problem(received, sent) is None
    assert standard_problem(received, sent) is None
    assert params_problem(received, sent, MIRRORS) is None


@given(VALUES, VALUES)
@example({"count": 1}, {"count": True})
@example({"region": "true"}, {"flag": True})
def test_headers_of_one_call_do_not_fit_another(first: JSONObject, second: JSONObject) -> None:
    """§Server Validation: different sources of truth are refused."""
    received = Headers(mirrored(call(**first), MIRRORS))
    seen_alike = mirrored(call(**first), MIRRORS) == mirrored(call(**second), MIRRORS)
    assert (params_problem(received, call(**second), MIRRORS) is None) == seen_alike


def test_a_client_writes_the_headers_of_the_specification() -> None:
    """§Custom Headers from Tool Parameters, the example."""
    assert mirrored(call(region="us-west1", count=42.0, flag=None), MIRRORS) == [
        (b"mcp-protocol-version", b"2026-07-28"),
        (b"mcp-method", b"tools/call"),
        (b"mcp-name", b"echo"),
        (b"mcp-param-region", b"us-west1"),
        (b"mcp-param-count", b"42"),
    ]
    assert mirrored(Request(1, "ping")) == [(b"mcp-method", b"ping")]


# -- annotations


def test_annotations_are_found_through_properties_alone() -> None:
    """§Schema Extension: statically reachable."""
    assert annotation_problems(SCHEMA) == []
    assert sorted(MIRRORS, key=lambda mirror: mirror.key) == [
        Mirror(("count",), "Mcp-Param-Count", b"mcp-param-count"),
        Mirror(("deep", "er"), "Mcp-Param-deep-er", b"mcp-param-deep-er"),
        Mirror(("flag",), "Mcp-Param-Flag", b"mcp-param-flag"),
        Mirror(("region",), "Mcp-Param-Region", b"mcp-param-region"),
    ]


def annotated(name: object, type_: object = "string") -> JSONObject:
    return {"type": type_, "x-mcp-header": name}


def properties(**schemas: object) -> JSONObject:
    return {"type": "object", "properties": schemas}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("", "'' is not a token (RFC 9110)"),
        ("a b", "'a b' is not a token (RFC 9110)"),
        ("X\r\nEvil: 1", "'X\\r\\nEvil: 1' is not a token (RFC 9110)"),
        ("X\n", "'X\\n' is not a token (RFC 9110)"),
        ("é", "'\\xe9' is not a token (RFC 9110)"),
        ("a:b", "'a:b' is not a token (RFC 9110)"),
        ("(" * 100, f"'{'(' * 64}...' is not a token (RFC 9110)"),
        (7, "the name must be a string, not int"),
        (int("9" * 4000), "the name must be a string, not int"),
        (None, "the name must be a string, not NoneType"),
        (["Region"], "the name must be a string, not list"),
        ({}, "the name must be a string, not dict"),
        (True, "the name must be a string, not bool"),
    ],
)
def test_a_name_is_a_token(name: object, expected: str) -> None:
    """§Schema Extension; https://github.com/modelcontextprotocol/python-sdk/issues/2989."""
    schema = properties(a=annotated(name))
    assert annotation_problems(schema) == [f"x-mcp-header of 'a': {expected}"]
    assert mirrors_of(schema) == ()


@pytest.mark.parametrize("name", ["Region", "a", "!#$%&'*+-.^_`|~09azAZ", "x" * 200])
@pytest.mark.parametrize("type_", ["string", "integer", "boolean"])
def test_a_token_on_a_primitive_property_is_fine(name: str, type_: str) -> None:
    """§Schema Extension."""
    schema = properties(a=annotated(name, type_))
    assert annotation_problems(schema) == []
    assert [mirror.path for mirror in mirrors_of(schema)] == [("a",)]


@pytest.mark.parametrize(
    "type_", ["number", "object", "array", "null", None, ["string", "null"], ["string"], 5, {}]
)
def test_the_property_is_a_string_an_integer_or_a_boolean(type_: object) -> None:
    """§Schema Extension: parameters with type `number` are not permitted."""
    problems = ["x-mcp-header of 'a': the type of the property must be one of "]
    assert annotation_problems(properties(a=annotated("A", type_))) == [
        problems[0] + "string, integer, boolean"
    ]


def test_names_differ_in_more_than_case() -> None:
    """§Schema Extension: case-insensitively unique, at any depth."""
    schema = properties(
        a=annotated("Region"), b=annotated("REGION"), c=properties(d=annotated("region"))
    )
    assert annotation_problems(schema) == [
        "x-mcp-header of 'b': 'REGION' has been given to another property",
        "x-mcp-header of 'c.d': 'region' has been given to another property",
    ]


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "x-mcp-header": "A"},
        properties(a={"type": "array", "items": annotated("A")}),
        properties(a={"type": "array", "prefixItems": [annotated("A")]}),
        properties(a={"type": "array", "items": properties(b=annotated("A"))}),
        properties(a={"oneOf": [annotated("A")]}),
        properties(a={"anyOf": [annotated("A"), {"type": "null"}]}),
        properties(a={"allOf": [properties(b=annotated("A"))]}),
        properties(a={"not": annotated("A")}),
        {"type": "object", "if": properties(a=annotated("A"))},
        {"type": "object", "then": properties(a=annotated("A"))},
        {"type": "object", "else": properties(a=annotated("A"))},
        {"type": "object", "$defs": {"a": annotated("A")}},
        {"type": "object", "$defs": {"const": annotated("A")}},
        {"type": "object", "definitions": {"a": annotated("A")}},
        {"type": "object", "patternProperties": {"a": annotated("A")}},
        {"type": "object", "dependentSchemas": {"a": properties(b=annotated("A"))}},
        {"type": "object", "additionalProperties": annotated("A")},
        {"type": "object", "anyOf": [properties(a=annotated("A"))]},
        {"type": "object", "x-other": {"deep": [annotated("A")]}},
        {"type": "object", "properties": [annotated("A")]},
    ],
)
def test_an_annotation_anywhere_else_is_refused(schema: JSONObject) -> None:
    """§Schema Extension: an annotation anywhere else makes the tool definition invalid."""
    problem = "x-mcp-header: only a property that is reached through `properties` alone can have"
    assert annotation_problems(schema) == [f"{problem} one"]
    assert mirrors_of(schema) == ()


@pytest.mark.parametrize(
    "schema",
    [
        {},
        properties(a=True),
        properties(**{"x-mcp-header": {"type": "string"}}),
        properties(a={"type": "object", "default": annotated("A")}),
        properties(a={"const": {"x-mcp-header": 5}}),
        properties(a={"enum": [{"x-mcp-header": 5}]}),
        properties(a={"examples": [{"x-mcp-header": 5}]}),
        properties(a={"type": "string", "description": "x-mcp-header"}),
    ],
)
def test_a_name_or_a_value_is_no_annotation(schema: JSONObject) -> None:
    """JSON Schema 2020-12: members of `properties` are names, `const` and `default` are data."""
    assert annotation_problems(schema) == []
    assert mirrors_of(schema) == ()


def test_a_property_may_have_the_name_of_a_keyword() -> None:
    schema = properties(
        const=annotated("A"), properties=annotated("B"), items=properties(enum=annotated("C"))
    )
    assert annotation_problems(schema) == []
    assert {mirror.path for mirror in mirrors_of(schema)} == {
        ("const",),
        ("properties",),
        ("items", "enum"),
    }


def test_a_deep_schema_is_walked_without_recursion() -> None:
    """ours: a schema must not end the process."""
    schema = annotated("A")
    for _ in range(5_000):
        schema = properties(a=schema)
    assert annotation_problems(schema) == []
    assert len(mirrors_of(schema)[0].path) == 5_000
    bad: JSONObject = json.loads('{"not":' * 500 + '{"x-mcp-header":1}' + "}" * 500)
    assert len(annotation_problems(bad)) == 1

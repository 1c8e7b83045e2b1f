"""What the headers of an HTTP request say about the message in its body, and whether it is true.

Not HTTP: Host, Origin, Accept and their like are decided elsewhere. MCP 2026-07-28
basic/transports/streamable-http §Request Metadata has a client copy some members of the body into
headers, so that what stands between may route by them. A server that did not compare the two
would run one thing while a gateway had allowed another.

* Names are compared without case, values with it. Space and tab around a value are no part of it.
* A value is visible ASCII, space and tab. `Mcp-Name` and `Mcp-Param-*` may wrap any text as
  `=?base64?...?=`: exactly these markers, the standard alphabet, padded, in its only spelling.
  What lacks one of the markers is itself; what has both and holds anything else is refused.
* A header that is compared must not come twice: two readers would take different ones.
* A header without a value in the body is refused like one that differs, because something may
  have acted on it. So is a value without its header.

`Failure` is the answer to give: -32020, HTTP status 400, the id of the request.
"""

from __future__ import annotations

import re
from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final, TypeAlias

from raxol_mcp.errors import HEADER_MISMATCH
from raxol_mcp.wire.jsonrpc import Failure
from raxol_mcp.wire.meta import META_VERSION, meta_of
from raxol_mcp.wire.values import Value

if TYPE_CHECKING:
    from raxol_mcp.wire.jsonrpc import JSONObject, Request

__all__ = [
    "MAX_MIRRORED_INTEGER",
    "METHOD",
    "NAME",
    "PROTOCOL_VERSION",
    "Headers",
    "Mirror",
    "annotation_problems",
    "decode_value",
    "encode_value",
    "mirrored",
    "mirrors_of",
    "params_problem",
    "plain_text",
    "standard_problem",
    "version_problem",
]

PROTOCOL_VERSION: Final = "MCP-Protocol-Version"
METHOD: Final = "Mcp-Method"
NAME: Final = "Mcp-Name"
# JavaScript rounds beyond it, so what stands between may read another number than we do.
MAX_MIRRORED_INTEGER: Final = 2**53 - 1

_PROTOCOL_VERSION_KEY: Final = PROTOCOL_VERSION.lower().encode()
_METHOD_KEY: Final = METHOD.lower().encode()
_NAME_KEY: Final = NAME.lower().encode()
_PARAM: Final = "Mcp-Param-"
_ANNOTATION: Final = "x-mcp-header"
_NAMED: Final = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
_TYPES: Final = ("string", "integer", "boolean")

_OWS: Final = b" \t"  # RFC 9110 §5.6.3
_PLAIN: Final = re.compile(rb"[\t\x20-\x7e]*")
_TOKEN: Final = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")  # RFC 9110 §5.6.2
# As a client writes one; the fraction is what is left of 42.0 in languages with one number type.
_DECIMAL: Final = re.compile(r"-?(?:0|[1-9][0-9]{0,15})(?:\.[0-9]{1,16})?")
_OPENING: Final = "=?base64?"
_CLOSING: Final = "?="
_SHOWN: Final = 64  # characters of a schema's text that go into a sentence

# Where a JSON Schema holds names that its author chose, and where values that are no schemas.
_BY_NAME: Final = frozenset(
    {
        *("properties", "patternProperties", "$defs", "definitions"),
        *("dependentSchemas", "dependencies"),
    }
)
_DATA: Final = frozenset({"const", "enum", "default", "examples", _ANNOTATION})

_Path: TypeAlias = tuple[str, ...]
_Scalar: TypeAlias = str | int | float  # a bool is an int


class Headers:
    """The headers of one request, as pairs of bytes, read once. Lower-case names find them."""

    __slots__ = ("_first", "_more")

    def __init__(self, raw: Iterable[tuple[bytes, bytes]]) -> None:
        first: dict[bytes, bytes] = {}
        more: dict[bytes, list[bytes]] = {}
        for name, value in raw:
            key = name.lower()
            if key in first:
                more.setdefault(key, []).append(value.strip(_OWS))
            else:
                first[key] = value.strip(_OWS)
        self._first = first
        self._more = more

    def all(self, name: bytes) -> list[bytes]:
        """Give every value that came under a name, in order, without the space around it."""
        value = self._first.get(name)
        return [] if value is None else [value, *self._more.get(name, ())]

    def get(self, name: bytes) -> bytes | None:
        """Give the first value of a name. Others are in `all`, and make `repeats` true."""
        return self._first.get(name)

    def repeats(self, name: bytes) -> bool:
        """Say whether a name came more than once, with one value or several."""
        return name in self._more


class Mirror(Value, frozen=True):
    """One annotated property: `path` leads to its value in the arguments, `header` carries it.

    `key` is the header's name as `Headers` wants it.
    """

    path: _Path
    header: str
    key: bytes


def plain_text(value: bytes) -> str | None:
    """Read a value that is never wrapped; None when it has a character it must not have."""
    return value.decode("ascii") if _PLAIN.fullmatch(value) else None


def decode_value(value: bytes) -> str | None:
    """Read a value that may be wrapped; None when it is not well formed (§Value Encoding)."""
    text = plain_text(value)
    if text is None or not text.startswith(_OPENING):
        return text
    payload = text.removeprefix(_OPENING)
    if not payload.endswith(_CLOSING):
        return text
    payload = payload.removesuffix(_CLOSING)
    try:
        decoded = b64decode(payload, validate=True)
        # Bits that do not count, and padding in a place of its own: a second spelling.
        return decoded.decode() if b64encode(decoded).decode() == payload else None
    except ValueError:
        return None


def encode_value(value: str | int | float) -> bytes:
    """Write a value for `Mcp-Name` or `Mcp-Param-*`: plain if it stays itself, else wrapped.

    The other direction of `decode_value`, for every text (without lone surrogates). A bool
    becomes `true` or `false`, a whole number its digits.
    """
    text = _text(value)
    raw = text.encode()
    looks_wrapped = text.startswith(_OPENING) and text.endswith(_CLOSING)
    if raw == raw.strip(_OWS) and _PLAIN.fullmatch(raw) and b"\t" not in raw and not looks_wrapped:
        return raw
    return f"{_OPENING}{b64encode(raw).decode()}{_CLOSING}".encode()


def version_problem(headers: Headers, request: Request) -> Failure | None:
    """Compare `MCP-Protocol-Version` with `params._meta`.

    A body without a version, or with one that is no string, is left to the check of the `_meta`
    keys, which comes first.
    """
    meta = meta_of(request.params)
    version = meta.get(META_VERSION) if meta is not None else None
    if not isinstance(version, str):
        return None
    values = headers.all(_PROTOCOL_VERSION_KEY)
    return _answer(request, _exact(PROTOCOL_VERSION, values, version, "the version in _meta"))


def standard_problem(headers: Headers, request: Request) -> Failure | None:
    """Compare `Mcp-Method`, and `Mcp-Name` where the method has something to name.

    A member that is missing or no string is left to the check of the params, unless a header
    claims to carry it.
    """
    reason = _exact(METHOD, headers.all(_METHOD_KEY), request.method, "the method")
    member = _NAMED.get(request.method)
    if reason is None and member is not None:
        name = request.params.get(member) if request.params is not None else None
        values = headers.all(_NAME_KEY)
        reason = _mirror_reason(NAME, values, name if isinstance(name, str) else None, member)
    return _answer(request, reason)


def params_problem(headers: Headers, request: Request, mirrors: Sequence[Mirror]) -> Failure | None:
    """Compare the `Mcp-Param-*` headers of a `tools/call` with its arguments.

    `mirrors` are those of the tool's input schema (`mirrors_of`); other headers are not looked
    at. Null and absent are one. A list, an object, or a member of another type than the schema
    says is left to the check of the arguments, unless a header claims to carry it.
    """
    arguments = request.params.get("arguments") if request.params is not None else None
    for mirror in mirrors:
        value = _at(arguments, mirror.path)
        where = ".".join(("arguments", *mirror.path))
        reason = _mirror_reason(mirror.header, headers.all(mirror.key), value, where)
        if reason is not None:
            return _answer(request, reason)
    return None


def mirrored(request: Request, mirrors: Sequence[Mirror] = ()) -> list[tuple[bytes, bytes]]:
    """Write the headers that a request has to carry, as a client does (§Client Behavior).

    Values that have no header form are left out: whoever checks the arguments refuses them.
    """
    meta = meta_of(request.params) or {}
    params = request.params or {}
    found: list[tuple[bytes, object]] = [
        (_PROTOCOL_VERSION_KEY, meta.get(META_VERSION)),
        (_METHOD_KEY, request.method),
    ]
    if request.method in _NAMED:
        found.append((_NAME_KEY, params.get(_NAMED[request.method])))
    found.extend((each.key, _at(params.get("arguments"), each.path)) for each in mirrors)
    return [(key, encode_value(value)) for key, value in found if isinstance(value, _Scalar)]


def mirrors_of(input_schema: JSONObject) -> tuple[Mirror, ...]:
    """Find the annotated properties of a tool in whose schema `annotation_problems` finds none."""
    return tuple(
        Mirror(path, f"{_PARAM}{name}", f"{_PARAM}{name}".lower().encode())
        for path, schema in _schemas(input_schema)
        if path and isinstance(name := schema.get(_ANNOTATION), str) and _TOKEN.fullmatch(name)
    )


def annotation_problems(input_schema: JSONObject) -> list[str]:
    """Say what is wrong with the `x-mcp-header` annotations of an input schema, a sentence each.

    A client drops a tool with such a schema (§Schema Extension). An annotation is looked for
    everywhere a client might look for one, so that a tool that passes is dropped by none.
    """
    problems: list[str] = []
    taken: set[str] = set()
    for path, schema in _schemas(input_schema):
        if _ANNOTATION in schema:
            reason = _annotation_reason(path, schema, taken)
            if reason is not None:
                where = f" of {_shown('.'.join(path))}" if path else ""
                problems.append(f"{_ANNOTATION}{where}: {reason}")
    return problems


def _annotation_reason(
    path: _Path | None, schema: Mapping[str, object], taken: set[str]
) -> str | None:
    """Say what is wrong with one annotation; otherwise its name is `taken` from now on."""
    name = schema[_ANNOTATION]
    if not path:
        return "only a property that is reached through `properties` alone can have one"
    if not isinstance(name, str):
        return f"the name must be a string, not {type(name).__name__}"
    if not _TOKEN.fullmatch(name):
        return f"{_shown(name)} is not a token (RFC 9110)"
    if schema.get("type") not in _TYPES:
        return f"the type of the property must be one of {', '.join(_TYPES)}"
    if name.lower() in taken:
        return f"{_shown(name)} has been given to another property"
    taken.add(name.lower())
    return None


def _schemas(root: object) -> Iterator[tuple[_Path | None, Mapping[str, object]]]:
    """Yield every schema in a schema, with the way to it when that is made of `properties` alone.

    Without recursion: a schema may be deep. Unknown keywords are walked too, as some clients do.
    """
    left: list[tuple[_Path | None, object]] = [((), root)]
    while left:
        path, node = left.pop()
        if isinstance(node, list):
            left.extend((None, item) for item in node)
        elif isinstance(node, dict):
            yield path, node
            for keyword, value in node.items():
                if keyword in _BY_NAME and isinstance(value, dict):
                    on = path if keyword == "properties" else None
                    left.extend(
                        (None if on is None else (*on, name), inner)
                        for name, inner in reversed(value.items())
                    )
                elif keyword not in _DATA:
                    left.append((None, value))


def _exact(shown: str, values: list[bytes], expected: str, what: str) -> str | None:
    if len(values) != 1:
        return f"{shown} is {'missing' if not values else 'there more than once'}"
    text = plain_text(values[0])
    if text is None:
        return f"{shown} has a character that a header must not have"
    return None if text == expected else f"{shown} is not {what}"


def _mirror_reason(shown: str, values: list[bytes], value: object, where: str) -> str | None:
    """Say how a header that mirrors a member of the params does not; None when all is well."""
    if not isinstance(value, _Scalar):  # null, absent, or nothing that can be mirrored
        return f"{shown} has no value in {where} to mirror" if values else None
    if len(values) != 1:
        return f"{shown} is {'missing' if not values else 'there more than once'}"
    text = decode_value(values[0])
    if text is None:
        return f"{shown} is not well formed"
    if isinstance(value, int) and abs(value) > MAX_MIRRORED_INTEGER:
        return f"the integer in {where} is too large to be mirrored"
    return None if _equal(text, value) else f"{shown} is not the value of {where}"


def _equal(text: str, value: str | int | float) -> bool:
    if isinstance(value, str | bool):
        return text == _text(value)
    # Numbers by what they are: 42 and 42.0 are one (§Server Validation).
    if not _DECIMAL.fullmatch(text):
        return False
    if value != int(value):
        return float(text) == value
    whole, _, fraction = text.partition(".")  # never as floats, which would round
    return int(whole) == value and not fraction.strip("0")


def _text(value: str | int | float) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(int(value) if isinstance(value, float) and value.is_integer() else value)


def _at(value: object, path: _Path) -> object:
    for name in path:
        if not isinstance(value, dict):
            return None
        value = value.get(name)
    return value


def _answer(request: Request, reason: str | None) -> Failure | None:
    if reason is None:
        return None
    return Failure(request.id, HEADER_MISMATCH, f"Header mismatch: {reason}")


def _shown(text: str) -> str:
    """Quote what a schema says for a sentence or a log: short, on one line."""
    return ascii(text if len(text) <= _SHOWN else f"{text[:_SHOWN]}...")

"""JSON-RPC messages: what a line of bytes is, and how a message is written.

Not the place where a message is acted on: whether a batch is allowed, a method known or an id
in use is decided by the core.

An incoming message is classified once, by which members it has, into a closed set of kinds
(JSON-RPC 2.0 §4, §5; MCP basic §Messages):

| members | kind |
|---|---|
| `method`, `id` | `Request` |
| `method`, no `id` | `Notification` |
| `result`, `id`, no `method` | `Response` |
| `error`, `id`, no `method` | `Failure`, also when there is a `result`: it fails closed |
| an array | `Batch` of the above |
| anything else that may be answered | `Invalid`, with the answer |
| anything else: broken responses, broken notifications, blank lines | `Ignored` |

A response is never answered, not even a broken one: two peers that did would never stop. Member
names are compared exactly; ids keep their type, so that 1, "1" and True are three things.
"""

from __future__ import annotations

from typing import Final, TypeAlias

import msgspec

from raxol_mcp.errors import INTERNAL_ERROR, INVALID_PARAMS, INVALID_REQUEST, PARSE_ERROR
from raxol_mcp.wire.results import UnencodableResult, decode_raw, encode_result, to_json
from raxol_mcp.wire.strict import INT64_MAX, INT64_MIN, Malformed, TooDeep, parse, reread

__all__ = [
    "MAX_BATCH_MESSAGES",
    "MAX_DEPTH",
    "Batch",
    "Failure",
    "Ignored",
    "Incoming",
    "Invalid",
    "JSONObject",
    "Message",
    "Notification",
    "Outgoing",
    "Request",
    "RequestId",
    "Response",
    "UnencodableResult",
    "classify",
    "decode",
    "decode_raw",
    "encode",
    "encode_result",
]

RequestId: TypeAlias = int | str
JSONObject: TypeAlias = dict[str, object]

MAX_DEPTH: Final = 128
# Ours: 4 MiB hold two million items `1,`, each of which is owed an answer of 80 bytes.
MAX_BATCH_MESSAGES: Final = 256

_VERSION: Final = "2.0"


# The tag writes `"jsonrpc":"2.0"` in front of the fields, and omit_defaults leaves absent params
# out: such a struct is written as it stands, by one C call.
class Request(msgspec.Struct, frozen=True, tag_field="jsonrpc", tag=_VERSION, omit_defaults=True):
    """A call that is owed exactly one answer, with the same id."""

    id: RequestId
    method: str
    params: JSONObject | None = None


class Notification(
    msgspec.Struct, frozen=True, tag_field="jsonrpc", tag=_VERSION, omit_defaults=True
):
    """A message that is never answered."""

    method: str
    params: JSONObject | None = None


class Response(msgspec.Struct, frozen=True, tag_field="jsonrpc", tag=_VERSION):
    """The result of a request: any JSON value, or `msgspec.Raw` from `encode_result`."""

    id: RequestId
    result: object


class Failure(msgspec.Struct, frozen=True):
    """An error response, in or out.

    `id` is None when the id of the request could not be read. `data` is any JSON value; absent
    and null are the same.
    """

    id: RequestId | None
    code: int
    message: str
    data: object = None


class Invalid(msgspec.Struct, frozen=True):
    """An incoming message that cannot be accepted. `failure` is what to answer."""

    failure: Failure


class Ignored(msgspec.Struct, frozen=True):
    """An incoming message to drop without an answer. `reason` is for the log."""

    reason: str


Message: TypeAlias = Request | Notification | Response | Failure | Invalid | Ignored


class Batch(msgspec.Struct, frozen=True):
    """An incoming array: 1 to `MAX_BATCH_MESSAGES` messages, each classified, never nested.

    Only MCP 2025-03-26 knows batches; the core refuses them elsewhere.
    """

    messages: list[Message]


Incoming: TypeAlias = Message | Batch
Outgoing: TypeAlias = Request | Notification | Response | Failure

_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"
_WHITESPACE: Final = b" \t\r\n"  # RFC 8259 §2, and no other
_NEWLINES_TO_SPACES: Final = bytes.maketrans(b"\r\n", b"  ")
_NEWLINE: Final = 0x0A
_RETURN: Final = 0x0D

# Shared, so that a batch of nonsense costs one object and not one each.
_NO_MESSAGE: Final = Invalid(
    Failure(None, INVALID_REQUEST, "Invalid request: a message is an object with a method")
)
_BLANK: Final = Ignored("blank line")


def decode(line: bytes, *, max_depth: int = MAX_DEPTH) -> Incoming:
    """Read one line; never raises.

    A byte order mark in front (RFC 8259 §8.1) and whitespace around are skipped. What is not
    strict JSON is answered -32700, with the id of the request where that can be read safely, so
    that the caller is not left waiting.
    """
    if line[:1] != b"{":
        line = line.removeprefix(_BYTE_ORDER_MARK).strip(_WHITESPACE)
        if not line:
            return _BLANK
    try:
        value = parse(line, max_depth=max_depth)
    except TooDeep as error:
        return _unreadable(None, error)
    except Malformed as error:
        return _unreadable(_recovered_id(line), error)
    return _batch(value) if isinstance(value, list) else _message(value)


def classify(value: object) -> Incoming:
    """Name an already parsed JSON value by the same rules; never raises."""
    return _batch(value) if isinstance(value, list) else _message(value)


def encode(message: Outgoing) -> bytes:
    """Write one message as one line of compact JSON, without the newline at its end.

    Raises `UnencodableResult` for values JSON cannot carry; values of users go through
    `encode_result` first, which finds them earlier and finds more. `msgspec.Raw` is copied.
    """
    if isinstance(message, Failure):
        error: JSONObject = {"code": message.code, "message": message.message}
        if message.data is not None:
            error["data"] = message.data
        line = to_json({"jsonrpc": _VERSION, "id": message.id, "error": error})
    else:
        line = to_json(message)
    if _NEWLINE in line or _RETURN in line:
        # From a Raw, and whitespace there: inside strings JSON has them escaped.
        line = line.translate(_NEWLINES_TO_SPACES)
    return line


def _batch(items: list[object]) -> Batch | Invalid:
    if not items:
        return _invalid(None, INVALID_REQUEST, "Invalid request: empty batch")
    if len(items) > MAX_BATCH_MESSAGES:
        return _invalid(
            None,
            INVALID_REQUEST,
            f"Invalid request: a batch of more than {MAX_BATCH_MESSAGES} messages",
        )
    return Batch([_message(item) for item in items])


def _message(value: object) -> Message:
    """Sort by presence first: what may be answered depends on it alone."""
    if not isinstance(value, dict):
        return _NO_MESSAGE
    method = value.get("method")
    if method is None and ("result" in value or "error" in value):
        return _reply(value)
    if "id" in value:
        return _request(value, method)
    if "method" in value:
        return _notification(value, method)
    return _NO_MESSAGE


def _request(value: JSONObject, method: object) -> Request | Invalid:
    """Check an object with an id that is no response.

    The order is fixed: params before the method (ours), then version, id and method.
    """
    id = _request_id(value["id"])
    params = value.get("params")
    if params is not None and not isinstance(params, dict):
        return _invalid(id, INVALID_PARAMS, "Invalid params: params must be an object")
    if value.get("jsonrpc") != _VERSION:
        # Without a method it may not even be JSON-RPC: its id says nothing then.
        return _invalid(id if "method" in value else None, INVALID_REQUEST, _WRONG_VERSION)
    if id is None:
        return _invalid(
            None, INVALID_REQUEST, "Invalid request: id must be a string or a 64 bit integer"
        )
    if method is None:
        return _invalid(id, INVALID_REQUEST, "Missing method")
    if not isinstance(method, str):
        return _invalid(id, INVALID_REQUEST, "Invalid request: method must be a string")
    if "result" in value or "error" in value:
        return _invalid(id, INVALID_REQUEST, _BOTH_WAYS)
    return Request(id, method, params)


def _notification(value: JSONObject, method: object) -> Notification | Invalid | Ignored:
    """Check an object with a method and without an id.

    Broken params or a broken method still leave a notification, which is never answered; the
    rest leaves something that is no notification.
    """
    params = value.get("params")
    if params is not None and not isinstance(params, dict):
        return Ignored("notification whose params is not an object")
    if not isinstance(method, str):
        return Ignored("notification whose method is not a string")
    if value.get("jsonrpc") != _VERSION:
        return _invalid(None, INVALID_REQUEST, _WRONG_VERSION)
    if "result" in value or "error" in value:
        return _invalid(None, INVALID_REQUEST, _BOTH_WAYS)
    return Notification(method, params)


def _reply(value: JSONObject) -> Response | Failure | Ignored:
    """Check an object with a result or an error and without a method; presence decides."""
    if value.get("jsonrpc") != _VERSION:
        return Ignored("response without the right jsonrpc version")
    id = _request_id(value.get("id"))
    if id is None:
        return Ignored("response without a usable id")
    if "error" not in value:
        return Response(id, value["result"])
    error = value["error"]
    if not isinstance(error, dict):
        return Failure(id, INTERNAL_ERROR, "malformed error")
    code, message = error.get("code"), error.get("message")
    return Failure(
        id,
        code if isinstance(code, int) and not isinstance(code, bool) else INTERNAL_ERROR,
        message if isinstance(message, str) else "malformed error",
        error.get("data"),
    )


_WRONG_VERSION: Final = 'Invalid request: jsonrpc must be "2.0"'
_BOTH_WAYS: Final = "Invalid request: a method together with a result or an error"


def _request_id(value: object) -> RequestId | None:
    """Give a usable id, else None. MCP basic §Requests: a string or an integer, never null."""
    if isinstance(value, str):
        return value
    if isinstance(value, int) and not isinstance(value, bool) and INT64_MIN <= value <= INT64_MAX:
        return value
    return None


def _recovered_id(line: bytes) -> RequestId | None:
    """Find the id of a request that is no strict JSON, if it has one beyond doubt.

    Beyond doubt: one `id` member, a usable one that can be written back as it came, and string
    methods only, so that it is a request and no response or notification.
    """
    again = reread(line)
    if again is None:
        return None
    ids = [value for name, value in again.members if name == "id"]
    methods = [value for name, value in again.members if name == "method"]
    if len(ids) != 1 or not methods or not all(isinstance(method, str) for method in methods):
        return None
    id = _request_id(ids[0])
    if isinstance(id, str):
        try:
            id.encode()
        except UnicodeEncodeError:
            return None
    return id


def _unreadable(id: RequestId | None, error: Malformed) -> Invalid:
    return _invalid(id, PARSE_ERROR, f"Parse error: {error}")


def _invalid(id: RequestId | None, code: int, message: str) -> Invalid:
    return Invalid(Failure(id, code, message))

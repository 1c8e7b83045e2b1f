"""URI templates: which URIs a resource template answers for, and the values in them.

Matches; never expands, reads or joins a path. What comes out is safe to use as a file name or a
path below a folder, whatever the client sent (see `Template.match`).

Two of the forms of RFC 6570: `{name}` matches one path segment, `{+name}` may span several.
"""

from __future__ import annotations

import re
import sys
from typing import Final

from raxol_mcp.errors import ConfigurationError
from raxol_mcp.server.uris import SCHEME, ascii_uri, bad_character

__all__ = ["MAX_MATCHED_CHARACTERS", "Template"]

# Ours: longer URIs match no template. Servers of the web stop at about the same length.
MAX_MATCHED_CHARACTERS: Final = 8192

_EXPRESSION = re.compile(r"\{([^{}]*)\}")
_VARIABLE = re.compile(r"\+?[A-Za-z_][A-Za-z0-9_]*")
_ESCAPE = re.compile(rb"%([0-9A-Fa-f]{2})")
_BROKEN_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")
_PATH_DELIMITER = re.compile(r"[/?#]")
_QUERY_DELIMITER = re.compile(r"[/?#&]")
# Refused in every decoded value: control characters (NUL ends names in C, CR LF ends header
# lines), a backslash (separates folders on Windows), and what decoding a second time would turn
# into a separator, a dot or a NUL.
_REFUSED = re.compile(r"[\x00-\x1f\x7f-\x9f\\]|%(?:00|2[eEfF]|5[cC])")
_DRIVE = re.compile(r"[A-Za-z]:")


class Template:
    """One URI template, ready to match.

    Raises `ConfigurationError` for one without a variable or a literal scheme, for other forms
    of RFC 6570 (lists, `{?name}`, prefixes), for variables that touch, for a name used twice, and
    for more than one `{+name}`: those are ambiguous.
    """

    __slots__ = ("_drives", "_literals", "_pivot", "_queries", "_spans", "_text", "variables")

    def __init__(self, text: str) -> None:
        pieces = _EXPRESSION.split(text)
        literals, expressions = pieces[::2], pieces[1::2]
        problem = _template_problem(literals, expressions)
        if problem is not None:
            raise ConfigurationError(f"the URI template {text!r} cannot be served: {problem}")
        self._text = text
        # In ASCII, as the URIs are: clients spell letters beyond it in either way.
        self._literals = [ascii_uri(literal) for literal in literals]
        self.variables = tuple(expression.lstrip("+") for expression in expressions)
        spanning = [at for at, expression in enumerate(expressions) if expression[0] == "+"]
        self._spans = bool(spanning)
        # The variable that takes what the others leave; see `_raw`.
        self._pivot = spanning[0] if spanning else len(expressions) - 1
        # Behind a question mark "&" ends a value as well.
        self._queries = ["?" in "".join(literals[: at + 1]) for at in range(len(expressions))]
        # On Windows C:x is a file of another folder, so there no value may begin like that.
        self._drives = text[:5].lower() == "file:" or sys.platform == "win32"

    def __repr__(self) -> str:
        return f"Template({self._text!r})"

    def match(self, uri: str) -> dict[str, str] | None:
        """Return `{variable: value}` when `uri` belongs to the template, else None.

        Every variable matches at least one character and is percent-decoded exactly once, after
        it was cut out. `{name}` takes the shortest text, never with "/", "?", "#" (nor "&" in a
        query); `{+name}` the longest. A URI one of whose decoded values could leave a folder
        does not match:

        - "." and ".." as a segment, also with spaces or more dots (Windows drops those);
        - "/" in a `{name}`; a leading "/" in a `{+name}`, but for `file://{+name}`, where the value
          is the whole path and there is no folder to leave;
        - a backslash, a control character, and `%2e`, `%2f`, `%5c`, `%00` that is still there
          after decoding: the next one to decode would see the separator;
        - a drive letter, in a `file:` template or on Windows;
        - bytes that are not UTF-8, and a "%" without two hexadecimal digits.
        """
        if len(uri) > MAX_MATCHED_CHARACTERS:
            return None
        raw = self._raw(ascii_uri(uri))
        if raw is None:
            return None
        values: dict[str, str] = {}
        for at, name in enumerate(self.variables):
            value = self._value(at, raw[at])
            if value is None:
                return None
            values[name] = value
        return values

    def _raw(self, uri: str) -> list[str] | None:
        """Cut the variables out of `uri`, still encoded.

        Without backtracking, so that no URI is slow: from the left each variable ends at the
        first occurrence of the literal behind it, up to the pivot; from the right likewise. That
        loses no match. Let a later end of a variable lead to a match. If the literal behind it
        holds a delimiter, the longer value would hold that delimiter too, which no `{name}` may.
        If it holds none, both neighbours live in the same stretch between delimiters, so the
        next value may begin earlier just as well. The pivot takes what is left, and the ends
        chosen leave it the most.
        """
        literals = self._literals
        start, end = len(literals[0]), len(uri) - len(literals[-1])
        if start >= end or not uri.startswith(literals[0]) or not uri.endswith(literals[-1]):
            return None
        raw = [""] * len(self.variables)
        for at in range(self._pivot):
            behind = literals[at + 1]
            stop = uri.find(behind, start + 1, end)
            if stop < 0:
                return None
            raw[at] = uri[start:stop]
            start = stop + len(behind)
        for at in range(len(raw) - 1, self._pivot, -1):
            before = literals[at]
            begin = uri.rfind(before, start, end - 1)
            if begin < 0:
                return None
            raw[at] = uri[begin + len(before) : end]
            end = begin
        if start >= end:
            return None
        raw[self._pivot] = uri[start:end]
        return raw

    def _value(self, at: int, raw: str) -> str | None:
        """Decode one value; None when it must not reach anybody."""
        spans = self._spans and at == self._pivot
        if not spans and (_QUERY_DELIMITER if self._queries[at] else _PATH_DELIMITER).search(raw):
            return None
        value = _decoded(raw)
        if value is None or _REFUSED.search(value):
            return None
        if spans:
            if value[0] == "/" and self._literals[at].lower() != "file://":
                return None
        elif "/" in value:
            return None
        if self._drives and _DRIVE.match(value):
            return None
        if any(_climbs(segment) for segment in value.split("/")):
            return None
        return value


def _template_problem(literals: list[str], expressions: list[str]) -> str | None:
    if not expressions:
        return "it holds no variable, so it is a resource"
    if re.match(SCHEME, literals[0]) is None:
        return "it must begin with a scheme, like file: or mem:"
    for literal in literals:
        bad = bad_character(literal)
        if bad is not None:
            return f"{bad!r} is out of place"
    for expression in expressions:
        if _VARIABLE.fullmatch(expression) is None:
            return f"{{{expression}}} is not {{name}} or {{+name}}"
    names = [expression.lstrip("+") for expression in expressions]
    if len(set(names)) < len(names):
        return "a variable occurs twice"
    if not all(literals[1:-1]):
        return "two variables touch, so where one ends is anybody's guess"
    if sum(expression[0] == "+" for expression in expressions) > 1:
        return "only one {+name} is possible"
    return None


def _decoded(text: str) -> str | None:
    """Percent-decode once. None for what is not percent-encoded UTF-8."""
    if "%" not in text:
        return text
    if _BROKEN_ESCAPE.search(text):
        return None
    try:
        # One pass over the bytes: what a replacement yields is not looked at again.
        return _ESCAPE.sub(lambda escape: bytes((int(escape[1], 16),)), text.encode()).decode()
    except UnicodeError:
        return None


def _climbs(segment: str) -> bool:
    """Say whether this segment is "." or "..", also once trailing dots and spaces are dropped."""
    return "." in segment and not segment.strip(". ")

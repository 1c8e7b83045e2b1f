"""References to variables inside the strings of a configuration file.

Knows text and a mapping; what a string is for, and whether its file may be believed, is decided
elsewhere. Nothing but these references means anything here: `$(...)`, backquotes, `~`, `%NAME%`
and `$NAME` are text.

    ${NAME}  ${env:NAME}                 the value; an unset or empty variable is an error
    ${NAME:-text}  ${env:NAME:-text}     the value; the text where it is unset or empty
    $${                                  a `${` that is no reference

A value is never looked at again, so a variable that holds `${OTHER}` brings in these eight
characters. A default is text up to the first `}`, and refers to nothing. Of the dollar signs in
front of a `{` each pair is one dollar sign, so `$$${NAME}` is a dollar sign and the value; anywhere
else a dollar sign is itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from raxol_mcp.client.redaction import escaped
from raxol_mcp.wire.values import Value

__all__ = ["BadReference", "Budget", "Reference", "Unset", "expanded", "names_in", "parts_of"]

_DOLLARS: Final = re.compile(r"\$+(?=\{)")
_REFERENCE: Final = re.compile(
    r"\{(?:env:)?(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?::-(?P<default>[^}]*))?\}", re.ASCII
)
# What may be repeated of a reference that is none: its beginning, and no default.
_SHOWN: Final = re.compile(r"\{(?:(?!:-)[^}]){0,40}")


class BadReference(ValueError):
    """A `${` begins something that is no reference. The message shows its beginning alone."""


class Unset(ValueError):
    """A string cannot be completed, because of the variable `name`. Its value is not told."""

    def __init__(self, name: str, why: str) -> None:
        super().__init__(f"the variable {escaped(name)} {why}")
        self.name = name


class Reference(Value, frozen=True):
    """A reference to the variable `name`; `default` is None where it has none."""

    name: str
    default: str | None = None


class Budget:
    """How many characters the strings of one server may grow to together."""

    __slots__ = ("_left",)

    def __init__(self, characters: int) -> None:
        self._left = characters

    def take(self, characters: int) -> bool:
        """Count them; False when there were more than were left."""
        self._left -= characters
        return self._left >= 0


def parts_of(text: str) -> list[str | Reference]:
    """Take a string apart into texts and references, in order. Raises `BadReference`."""
    return list(_parts(text))


def names_in(text: str) -> list[str]:
    """Name the variables a string refers to, in order; one may come twice."""
    return [part.name for part in _parts(text) if isinstance(part, Reference)]


def expanded(text: str, environ: Mapping[str, str], *, budget: Budget) -> str:
    """Put the values in the place of the references.

    Looks up the names that `text` has, and nothing else. Raises `BadReference`, and `Unset` for a
    variable that is unset or empty and has no default, that is not text, or that exceeds what is
    left of `budget`.
    """
    written = []
    for part in _parts(text):
        if isinstance(part, Reference):
            value = _value(part, environ)
            if not budget.take(len(value)):
                raise Unset(part.name, "makes this server's entry too large")
            written.append(value)
        else:
            written.append(part)
    return "".join(written)


def _value(reference: Reference, environ: Mapping[str, str]) -> str:
    value = environ.get(reference.name)
    if not value:
        if reference.default is not None:
            return reference.default
        raise Unset(reference.name, "is not set" if value is None else "is empty")
    try:
        value.encode()
    except UnicodeEncodeError:  # bytes that os.environ could not decode, as surrogates
        raise Unset(reference.name, "does not hold UTF-8 text") from None
    return value


def _parts(text: str) -> Iterator[str | Reference]:
    taken = 0  # up to here everything has been yielded
    position = 0
    while dollars := _DOLLARS.search(text, position):
        start, brace = dollars.span()
        pairs, odd = divmod(brace - start, 2)
        plain = text[taken:start] + "$" * pairs
        if odd:
            match = _REFERENCE.match(text, brace)
            default = match["default"] if match else None
            if match is None or "${" in (default or ""):
                raise BadReference(_refused(text, brace, nested=match is not None))
            if plain:
                yield plain
            yield Reference(match["name"], default)
            taken = position = match.end()
        else:
            # What follows the brace is read on as text, and may hold references.
            yield plain + "{"
            taken = position = brace + 1
    if taken < len(text):
        yield text[taken:]


def _refused(text: str, brace: int, *, nested: bool) -> str:
    if nested:
        return "a default that refers to a variable; it can only be text"
    match = _SHOWN.match(text, brace)
    beginning = match[0] if match else ""
    return f"{escaped('$' + beginning)}... is no reference to a variable (write $${{ for a ${{)"

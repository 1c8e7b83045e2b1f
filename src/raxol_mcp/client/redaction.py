"""What of a client's options may be shown: names and places, never a credential.

Header values, values of environment variables and arguments of a command are masked whole, since
nobody can tell which of them is a secret; of a URL the user information, the query and the
fragment are. Names stay, and how many there are, so that a reader can still find the mistake.

Two uses: `described` renders options, right or wrong, for errors and `repr`; `Secrets` masks what
is known to be secret inside a text that somebody else wrote, such as the last words of a server
on stderr.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

__all__ = ["MASK", "Secrets", "described", "escaped", "shown", "shown_url"]

MASK: Final = "[redacted]"

# Options whose values are never secrets. What is not known (a misspelt `header`) is masked.
_PLAIN: Final = frozenset(
    {
        *("allow_private", "answer_timeout", "call_timeout", "chunk_timeout", "command"),
        *("concurrency", "connect_timeout", "cwd", "drop_env", "era", "era_ttl", "fail_fast"),
        *("inherit_env", "init_timeout", "max_message_bytes", "metered", "name", "pool_size"),
        *("prices", "probe_timeout", "queue_limit", "reconnect"),
    }
)
_NAME: Final = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]{1,64}")  # a header or a variable
_MAX_SHOWN: Final = 120
_MAX_ITEMS: Final = 16

# The host cannot hold a "@", and a path only in front of a segment ("/@scope/tool") and behind no
# port: anything else may be a password that has a slash in it.
_URL: Final = re.compile(
    r"(?P<scheme>[a-z][a-z0-9+.\-]{0,30})://"
    r"(?:[^/?#@\s]*@)?"
    r"(?P<host>[^/?#@:\[\]\s]+|\[[0-9a-f:.%]+\])"
    r"(?:(?::(?P<port>[0-9]{1,5})(?P<path>(?:/[^/?#@\s]*)*))|(?P<bare>(?:/@?[^/?#@\s]*)*))"
    r"(?P<rest>[?#].*)?",
    re.IGNORECASE | re.ASCII | re.DOTALL,
)
# `--token` alone says nothing; `--token=abc` does.
_OPTION: Final = re.compile(r"-{1,2}[A-Za-z][A-Za-z0-9_-]*")
_MIN_SECRET: Final = 4
_DOTS: Final = "..."  # what stands where a text was cut


def described(options: Mapping[str, object]) -> str:
    """Render the options of a client, valid or not, on one line: `ClientSpec('a', url='...')`.

    Only what is given is shown; a None is left out.
    """
    shown_options = [
        _masked_option(name, value)
        for name, value in list(options.items())[:64]
        if name != "name" and value is not None
    ]
    name = shown(options.get("name"))
    return f"ClientSpec({', '.join([name, *shown_options])})"


def shown(value: object) -> str:
    """Write a value that is no secret for a sentence: short, escaped, on one line."""
    if isinstance(value, str):
        return ascii(_cut(value))
    if value is None or isinstance(value, bool | float):
        return repr(value)
    if isinstance(value, int) and abs(value) < 10**30:
        return repr(value)
    return f"<{type(value).__name__}>"


def escaped(text: str) -> str:
    """Write a text that is no secret as `shown` does, without quotes around it."""
    return ascii(_cut(text))[1:-1]


def shown_url(url: object) -> str:
    """Write a URL without user information, query and fragment; masked whole if it is none.

    Where something was left out, a mask says so, so that a URL with a query does not look like
    one without.
    """
    match = _URL.fullmatch(url) if isinstance(url, str) else None
    if match is None:
        return MASK
    port = "" if match["port"] is None else f":{match['port']}"
    path = match["path"] or match["bare"] or ""
    rest = "" if match["rest"] is None else f"{match['rest'][0]}{MASK}"
    text = f"{match['scheme']}://{match['host']}{port}{path}"
    return f"{escaped(text)}{rest}"


class Secrets:
    """The values of one client's options that must not be in a text.

    Values of fewer than 4 characters are left alone: they are in every text. `repr` shows how
    many there are.
    """

    __slots__ = ("_pattern", "_values")

    def __init__(
        self,
        *,
        headers: Iterable[tuple[str, str]] = (),
        env: Iterable[tuple[str, str]] = (),
        args: Iterable[str] = (),
        url: str | None = None,
    ) -> None:
        found: set[str] = set()
        for _, value in headers:
            # Of "Bearer abc" a server repeats the last part alone.
            found.update((value, value.strip(), *value.split()[1:]))
        found.update(value for _, value in env)
        for argument in args:
            name, given, value = argument.partition("=")
            found.update(() if _OPTION.fullmatch(argument) else (argument,))
            found.update((value,) if given and _OPTION.fullmatch(name) else ())
        found.update(_url_secrets(url or ""))
        # Escaped as well: that is how texts of others are shown.
        escaped = {ascii(value)[1:-1] for value in found}
        self._values = sorted(
            {value for value in found | escaped if len(value) >= _MIN_SECRET},
            key=lambda value: (-len(value), value),
        )
        self._pattern: re.Pattern[str] | None = None

    def __repr__(self) -> str:
        return f"Secrets({len(self._values)})"

    def masked(self, text: str) -> str:
        """Give a text with every secret in it masked; of two that overlap, the longer counts.

        Texts come here cut to their bounds: what is left of a secret beside the dots of such a cut
        is masked as well.
        """
        if not self._values:
            return text
        if self._pattern is None:  # most clients never fail
            # In any case: where case does not count, as in a media type, it gets lost.
            self._pattern = re.compile("|".join(map(re.escape, self._values)), re.IGNORECASE)
        masked = self._pattern.sub(MASK, text)
        if masked.startswith(_DOTS):
            rest = masked.removeprefix(_DOTS)
            size = max(_end_in_front(value, rest) for value in self._values)
            masked = f"{_DOTS}{MASK}{rest[size:]}" if size else masked
        if masked.endswith(_DOTS):
            rest = masked.removesuffix(_DOTS)
            size = max(_beginning_behind(value, rest) for value in self._values)
            masked = f"{rest[: len(rest) - size]}{MASK}{_DOTS}" if size else masked
        return masked


def _end_in_front(secret: str, text: str) -> int:
    """Count the characters of the longest end of a secret that a text begins with."""
    sizes = range(min(len(secret), len(text)), _MIN_SECRET - 1, -1)
    return next((size for size in sizes if text.startswith(secret[-size:])), 0)


def _beginning_behind(secret: str, text: str) -> int:
    """Count the characters of the longest beginning of a secret that a text ends with."""
    sizes = range(min(len(secret), len(text)), _MIN_SECRET - 1, -1)
    return next((size for size in sizes if text.endswith(secret[:size])), 0)


def _cut(text: str) -> str:
    return text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]}..."


def _masked_option(name: object, value: object) -> str:
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        return f"{MASK}={MASK}"
    if name == "url":
        return f"url={shown_url(value)!r}"
    if name in ("headers", "env"):
        return f"{name}={_masked_pairs(value)}"
    if name == "args" and isinstance(value, list | tuple):
        return f"args=[{_several([repr(MASK)] * len(value))}]"
    if name not in _PLAIN:
        return f"{name}={MASK!r}"
    if name == "prices" and isinstance(value, Mapping):
        prices = [f"{shown(tool)}: {shown(price)}" for tool, price in value.items()]
        return f"prices={{{_several(prices)}}}"
    if name == "drop_env" and isinstance(value, list | tuple):
        return f"drop_env=[{_several([_shown_name(item) for item in value])}]"
    return f"{name}={shown(value)}"


def _masked_pairs(value: object) -> str:
    """Mask the values of pairs and keep their names; what is no pair is masked whole."""
    if isinstance(value, Mapping):
        names: list[object] = list(value)
    elif isinstance(value, list | tuple):
        names = [
            item[0] if isinstance(item, list | tuple) and len(item) == 2 else None for item in value
        ]
    else:
        return repr(MASK)
    return f"{{{_several([f'{_shown_name(name)}: {MASK!r}' for name in names])}}}"


def _shown_name(name: object) -> str:
    return repr(name if isinstance(name, str) and _NAME.fullmatch(name) else MASK)


def _several(items: list[str]) -> str:
    more = [f"... {len(items) - _MAX_ITEMS} more"] if len(items) > _MAX_ITEMS else []
    return ", ".join([*items[:_MAX_ITEMS], *more])


def _url_secrets(url: str) -> Iterator[str]:
    """Find user information, query and fragment, whole and in parts, as written and decoded."""
    from urllib.parse import unquote, unquote_plus

    front, _, fragment = url.partition("#")
    front, _, query = front.partition("?")
    behind = front.partition("://")[2]
    # What is no URL to us is masked up to its last "@".
    authority = behind.partition("/")[0] if _URL.fullmatch(url) else behind
    user_info = authority.rpartition("@")[0]
    for part in (user_info, *user_info.split(":", 1), query, fragment):
        yield part
        yield unquote(part)
    for pair in (*query.split("&"), *fragment.split("&")):
        value = pair.partition("=")[2]
        yield value
        yield unquote(value)
        yield unquote_plus(value)

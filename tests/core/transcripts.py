r"""Plays a transcript: a conversation with one server, every word of it.

```
# What this shows, as the first line.
limits max_in_flight=1             bounds, before everything else
open                               attaches a sink to connection "a"
open b principal=alice share=alice greeting_required
hello b {"elicitation": {}} 2025-06-18    opens a connection and initializes it
$YES = {"approve": true}           names a JSON value
> {"id": 1, "method": "ping"}      connection "a" sends; `b>` for another one
< {"id": 1, "result": {}}          the next thing that happens: this is pushed to "a"; `b<`
request> {"id": 1, ...}            somebody inside calls `request()`; `request b>`
handle> {"id": 1, ...}             somebody inside calls `handle_message()`
reply< null                        the next thing that happens: that caller gets its reply
* 7 starts                         ... a worker starts for call 7: the authorizer, then the tool
* 7 runs | * 7 reads               ... what was approved runs; a read is carried out
* 7 is stopped                     ... the worker of call 7 is told to stop
* 7 hears KEY {...} | nothing      ... the running tool of call 7 gets an answer
* noted EVENT                      ... something is recorded
worker 7 returns "text" | {...}    the worker of call 7 ends (`worker 7 of b` on another connection)
worker 7 asks "Sure?"              ... its authorizer asks the human
worker 7 asks {"key": {"method": ..., "params": {...}}}     ... and for forms before it runs
worker 7 wants {"key": {...}} ["state"]    ... the tool asks and wants to be run again
worker 7 denies "reason" | fails "text" | refuses -32602 "message" | grants {...} | crashes
tool 7 asks KEY {"method": ..., "params": {...}}            while it runs, and so on:
tool 7 progresses 1 | tool 7 logs warning {...} | tool 7 may take 5s
+60s                               time passes, and the shell's timer fires
!cancel 7 | !gone b | !input ended b | !server stops | !news METHOD {...}
= 1 connections | 0 in flight | 0 parked | 0 deadlines      what the server says of itself
```

`jsonrpc` is left out everywhere. A line that begins with a space continues the one before. In what
is expected, `"$NAME"` is bound where it first appears and means the same ever after; an object
where there is a text means that the text is JSON; and `"...": "..."` allows other members. Whatever
happens must be written down: a transcript that leaves something out fails, and so does a server
that is not empty once everybody has left.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

from raxol_mcp.core.calls import Via
from raxol_mcp.core.outcomes import (
    Asked,
    Denied,
    Failed,
    Granted,
    Outcome,
    Refused,
    Returned,
    Stopped,
)
from raxol_mcp.core.peers import Capability
from raxol_mcp.core.questions import Question, approval
from raxol_mcp.wire.jsonrpc import JSONObject
from raxol_mcp.wire.meta import LOG_LEVELS
from tests.core.support import EMPTY, World

JOBS = {"starts": "authorize_then_run", "reads": "read", "runs": "run"}
NEEDS = {"sampling/createMessage": Capability.SAMPLING, "roots/list": Capability.ROOTS}
LINE = re.compile(
    r"(?:(?P<door>request|handle) ?)?(?P<peer>\w*)(?P<way>[<>]) (?P<json>.*)"
    r"|(?P<word>\$\w+ =|[*+=!]|\w+) ?(?P<rest>.*)",
    re.DOTALL,
)
ELLIPSIS = "..."


class Mismatch(AssertionError):
    """What happened is not what is written."""


class Player:
    """Plays the lines of one transcript against a world of its own."""

    def __init__(self) -> None:
        self.world = World()
        self.names: dict[str, object] = {}
        self.happened: list[tuple[object, ...]] = []
        self._words: dict[str, Callable[[str], None]] = {
            "limits": self._limits,
            "open": self._open,
            "hello": self._hello,
            "worker": self._worker,
            "tool": self._tool,
            "*": self._expect,
            "+": self._time,
            "=": self._counts,
            "!": self._fact,
        }

    def play(self, text: str) -> None:
        """Play a whole transcript; an error names its line."""
        for number, line in _lines(text):
            try:
                self._line(line)
            except Exception as error:
                error.add_note(f"line {number}: {line}")
                raise
        self._quiet()
        left = self.world.wind_down()
        if left != EMPTY:
            raise Mismatch(f"everybody has left, but there is {left}")

    def _line(self, line: str) -> None:
        found = LINE.fullmatch(line)
        assert found is not None, "this is no line of a transcript"
        if found["way"] == "<":
            self._pushed(found["peer"] or "a", self._json(found["json"]))
        elif found["way"] == ">":
            self._sent(found["door"], found["peer"] or "a", found["json"])
        elif found["word"].startswith("$"):
            self.names[found["word"][:-2]] = self._given(found["rest"])
        else:
            assert found["word"] in self._words, "nothing is called so"
            self._words[found["word"]](found["rest"])

    # -- what happens -------------------------------------------------------------------------

    def _happens(self, effects: list[tuple[object, ...]]) -> None:
        self.happened = effects

    def _quiet(self) -> None:
        if self.happened:
            raise Mismatch(f"nobody wrote down {self.happened[0]!r}")

    def _limits(self, rest: str) -> None:
        pairs = (pair.split("=") for pair in rest.split())
        limits = {name: float(value) if "." in value else int(value) for name, value in pairs}
        self.world = World(**limits)  # type: ignore[arg-type]  # the names are those of Limits

    def _open(self, rest: str) -> None:
        self._quiet()
        words = rest.split()
        plain = [word for word in words if "=" not in word and word != "greeting_required"]
        options = dict(word.split("=") for word in words if "=" in word)
        self._happens(
            self.world.open(
                plain[0] if plain else "a",
                principal=options.get("principal"),
                share=options.get("share"),
                greeting_required="greeting_required" in words,
            )
        )

    def _hello(self, rest: str) -> None:
        self._quiet()
        found = re.fullmatch(r"(\w*) ?(\{.*\})? ?([\d-]*)", rest)
        assert found is not None, "hello CONNECTION {capabilities} VERSION"
        connection = found[1] or "a"
        peer = self.world.core.ledger.peers.find(connection)
        if peer is None or not peer.open:
            self.world.open(connection)
        capabilities = self._given(found[2] or "{}")
        assert isinstance(capabilities, dict)
        self.world.greet(connection, capabilities, found[3] or "2025-11-25")

    def _sent(self, door: str | None, connection: str, text: str) -> None:
        self._quiet()
        via = {None: Via.PUSH, "request": Via.REPLY, "handle": Via.HANDLE}[door]
        caller = None if via is Via.PUSH else "caller"
        self._happens(self.world.send(self._given(text), connection, via=via, caller=caller))

    def _worker(self, rest: str) -> None:
        self._quiet()
        id, connection, verb, words = _of(rest)
        outcome = self._outcome(self.world.calls[connection, id].name, verb, words)
        if isinstance(outcome, str):
            self._happens(self.world.returns(id, outcome, connection))
        elif isinstance(outcome, Returned):
            payload = outcome.payload
            assert isinstance(payload, dict)
            complete = self.world.calls[connection, id].era.complete(payload)
            self._happens(self.world.ends(id, Returned(complete), connection))
        else:
            self._happens(self.world.ends(id, outcome, connection))

    def _outcome(self, name: str, verb: str, words: str) -> Outcome | str:
        value, more = self._values(words)
        match verb:
            case "returns":
                return value if isinstance(value, str) else Returned(value)
            case "asks":
                if isinstance(value, str):
                    return Asked((approval(value, name),))
                return Asked(_questions(value, consent=True))
            case "wants":
                state = more if isinstance(more, str) else None
                return Asked(_questions(value), round=True, state=state)
            case "denies":
                return Denied(str(value))
            case "fails":
                return Failed(str(value))
            case "refuses":
                assert isinstance(value, int)
                return Refused(value, str(more))
            case "grants":
                return Granted(value if isinstance(value, dict) else None)
            case "crashes":
                return Stopped()
            case _:
                raise AssertionError(f"a worker does not {verb!r}")

    def _tool(self, rest: str) -> None:
        self._quiet()
        id, connection, verb, words = _of(rest)
        call, core, now = self.world.calls[connection, id], self.world.core, self.world.now
        match verb, words.split(" ", 1):
            case "asks", [key, text]:
                (question,) = _questions({key: self._given(text)})
                self._happens(self.world.asked_midway(id, key, question, connection))
            case "progresses", [number, *message]:
                told = str(self._given(message[0])) if message else None
                effects = core.progressed(call, float(number), None, told, now)
                self._happens(self.world.took(effects))
            case "logs", [level, text]:
                severity, data = LOG_LEVELS.index(level), self._given(text)
                self._happens(self.world.took(core.logged(call, severity, None, data, now)))
            case "may", ["take", seconds]:
                limited = core.limited(call, float(seconds.removesuffix("s")), now)
                self._happens(self.world.took(limited))
            case _:
                raise AssertionError(f"a tool does not {verb!r}")

    def _time(self, rest: str) -> None:
        self._quiet()
        self._happens(self.world.passes(float(rest.removesuffix("s"))))

    def _fact(self, rest: str) -> None:
        self._quiet()
        world = self.world
        match rest.split(" ", 2):
            case ["cancel", id]:
                self._happens(world.cancel(_plain(id)))
            case ["gone", *connection]:
                self._happens(world.gone(connection[0] if connection else "a"))
            case ["input", "ended", *connection]:
                ended = world.core.input_ended(connection[0] if connection else "a", world.now)
                self._happens(world.took(ended))
            case ["server", "stops"]:
                self._happens(world.took(world.core.stopped(world.now)))
            case ["news", method, *params]:
                value = self._given(params[0]) if params else {}
                assert isinstance(value, dict)
                self._happens(world.took(world.core.notified(method, value, world.now)))
            case _:
                raise AssertionError("no such thing happens")

    # -- what is expected ---------------------------------------------------------------------

    def _next(self) -> tuple[object, ...]:
        if not self.happened:
            raise Mismatch("nothing else has happened")
        return self.happened.pop(0)

    def _pushed(self, connection: str, message: object) -> None:
        effect = self._next()
        if connection == "reply":
            seen: tuple[object, ...] = (
                "reply",
                "caller",
                effect[2] if effect[0] == "reply" else "",
            )
            self._same(seen[:2] == effect[:2] and self._matches(message, effect[2]), effect)
        else:
            told = effect[0] in ("push", "note") and effect[1] == connection
            self._same(told and self._matches(message, effect[2]), effect)

    def _expect(self, rest: str) -> None:
        effect = self._next()
        subject, _, words = rest.partition(" ")
        if subject == "noted":
            self._same(effect[:2] == ("record", words), effect)
        elif words in JOBS:
            self._same(effect == ("start", _plain(subject), JOBS[words]), effect)
        elif words == "is stopped":
            self._same(effect == ("stop", _plain(subject)), effect)
        else:
            verb, key, text = words.split(" ", 2)
            assert verb == "hears", "a call starts, reads, runs, is stopped or hears"
            answer = None if text == "nothing" else self._json(text)
            self._same(
                effect[:3] == ("resolve", _plain(subject), key)
                and self._matches(answer, effect[3]),
                effect,
            )

    def _counts(self, rest: str) -> None:
        self._quiet()
        if repr(self.world.core) != f"<ServerCore {rest}>":
            raise Mismatch(f"it is {self.world.core!r}")

    def _same(self, same: object, effect: tuple[object, ...]) -> None:
        if not same:
            raise Mismatch(f"there was {effect!r}")

    def _matches(self, expected: object, actual: object) -> bool:
        if isinstance(expected, str) and re.fullmatch(r"\$\w+", expected):
            return self.names.setdefault(expected, actual) == actual
        if isinstance(expected, dict) and isinstance(actual, str):
            actual = json.loads(actual)
        if isinstance(expected, dict) and isinstance(actual, dict):
            named = expected.keys() - {ELLIPSIS}
            whole = named <= actual.keys() if ELLIPSIS in expected else named == actual.keys()
            return whole and all(self._matches(expected[name], actual[name]) for name in named)
        if isinstance(expected, list) and isinstance(actual, list):
            pairs = zip(expected, actual, strict=False)
            return len(expected) == len(actual) and all(self._matches(*pair) for pair in pairs)
        return type(expected) is type(actual) and expected == actual

    # -- JSON ---------------------------------------------------------------------------------

    def _json(self, text: str) -> object:
        return json.loads(text)

    def _given(self, text: str) -> object:
        return self._filled(self._json(text))

    def _values(self, text: str) -> tuple[object, object]:
        """Read up to two JSON values in a row."""
        if not text:
            return None, None
        value, end = json.JSONDecoder().raw_decode(text)
        rest = text[end:].strip()
        return self._filled(value), self._given(rest) if rest else None

    def _filled(self, value: object) -> object:
        """Put in what names stand for."""
        if isinstance(value, str) and re.fullmatch(r"\$\w+", value):
            assert value in self.names, f"{value} has no value yet"
            return self.names[value]
        if isinstance(value, dict):
            return {name: self._filled(item) for name, item in value.items()}
        if isinstance(value, list):
            return [self._filled(item) for item in value]
        return value


def play(path: Path) -> None:
    """Play the transcript in a file."""
    Player().play(path.read_text("utf-8"))


def _lines(text: str) -> list[tuple[int, str]]:
    """Give the lines that say something, with their numbers, continued ones put together."""
    lines: list[tuple[int, str]] = []
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith(" ") and line.strip():
            first, begun = lines.pop()
            lines.append((first, f"{begun} {line.strip()}"))
        elif line.strip() and not line.startswith("#"):
            lines.append((number, line.rstrip()))
    return lines


def _of(rest: str) -> tuple[object, str, str, str]:
    """Read `ID [of CONNECTION] VERB WORDS`."""
    found = re.fullmatch(r"(\S+)(?: of (\w+))? (\w+) ?(.*)", rest, re.DOTALL)
    assert found is not None, "ID of CONNECTION VERB ..."
    return _plain(found[1]), found[2] or "a", found[3], found[4]


def _plain(text: str) -> object:
    """Read an id: a number is a number, everything else a string; `"7"` is one, too."""
    return json.loads(text) if re.fullmatch(r'-?\d+|".*"', text) else text


def _questions(value: object, *, consent: bool = False) -> tuple[Question, ...]:
    """Make questions of `{key: {method, params}}`."""
    assert isinstance(value, dict)
    found = []
    for key, request in value.items():
        method = str(request["method"])
        params: JSONObject = request.get("params", {})
        needs = NEEDS.get(method, Capability.FORM)
        if params.get("mode") == "url":
            needs = Capability.URL
        found.append(Question(key, method, params, needs, consent=consent))
    return tuple(found)

"""The server that every case is tried on: a journal, and one tool for each way to misbehave.

`python tests/cases/fixture_server.py '{"journal": "...", "limits": {...}}'` serves it over stdio;
`Fixture` makes it in this process. Handlers note `start:NAME:TAG`, `end:NAME:TAG`,
`cancelled:TAG` and what they did, so that a test sees what ran and not only what was answered.
"""

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Literal

from msgspec import Meta

from raxol_mcp import (
    Ask,
    AuthorizationContext,
    Authorizer,
    Context,
    Elicit,
    Image,
    InputRequired,
    Limits,
    Resource,
    Server,
    Tool,
    ToolError,
    allow,
    ask,
    deny,
    nonblocking,
    serve_stdio,
)
from raxol_mcp.server.authorizer import Decision
from raxol_mcp.transports.stdio import Ended

if os.environ.get("FIXTURE_BANNER"):
    print("BANNER")  # noqa: T201  # what a case is about: a module that prints when it is imported

ADMIN = "admin"
# The same one, in memory and by a token.
ADMINS = frozenset({ADMIN, f"static|{ADMIN}"})
SECRET = "the planted secret"
INSTRUCTIONS = "Read first — then call ✓"
BYTES = bytes(range(256)) + b"\xfb\xef\xbe"
GUARDED = frozenset({"admin_only"})
DISABLED = frozenset({"off"})

Level = Literal["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]
# What a child process is given as an argument: no leading dash, no control character.
Target = Annotated[str, Meta(pattern=r"^[A-Za-z0-9_./][A-Za-z0-9_./-]*$")]
Url = Annotated[str, Meta(pattern=r"^https?://[!-~]+$")]
Header = Annotated[str, Meta(pattern=r"^[ -~]*$")]


@dataclass(frozen=True)
class Knobs:
    """What a case may turn.

    `journal` is a file that gets a copy of every line. `limits` are fields of `Limits`, `stdio`
    options of `serve_stdio`. With `closed` the authorizers allow what they know and nothing else.
    """

    journal: str | None = None
    limits: Mapping[str, int | float] = field(default_factory=dict)
    stdio: Mapping[str, int | float] = field(default_factory=dict)
    closed: bool = False
    page_size: int = 100


class Journal:
    """What the handlers did, in order."""

    def __init__(self, path: str | None) -> None:
        self.lines: list[str] = []
        self._fd = None if path is None else os.open(path, os.O_CREAT | os.O_APPEND | os.O_WRONLY)

    def note(self, line: str) -> None:
        """Add one line; it is in the file even if the process is killed right after."""
        self.lines.append(line)
        if self._fd is not None:
            os.write(self._fd, f"{line}\n".encode(errors="backslashreplace"))


@dataclass
class Confirm:
    """A form with one box."""

    confirm: bool


@dataclass
class Person:
    """A form whose fields have bounds."""

    age: Annotated[int, Meta(ge=18, le=99)]
    color: Literal["Red", "Green", "Blue"] | None = None


@dataclass
class Point:
    """A structured result."""

    x: int
    y: int


@dataclass
class Options:
    """A nested argument."""

    deep: bool = False


class Fixture:
    """The server, its journal, and the folder behind `file:///docs/{name}`."""

    def __init__(self, knobs: Knobs | None = None) -> None:
        self.knobs = knobs or Knobs()
        self.journal = Journal(self.knobs.journal)
        self.docs = Path()  # made when the server starts
        self.server = Server(
            "fixture",
            version="1.0",
            title="Fixture",
            instructions=INSTRUCTIONS,
            authorizer=self._guard(),
            read_authorizer=self._read_guard(),
            authorizer_source="configured",
            limits=Limits(**self.knobs.limits),  # type: ignore[arg-type]  # the caller's to type
            page_size=self.knobs.page_size,
            lifespan=self._lifespan,
            state_key=b"k" * 32,
        )
        for declare in (
            _plain,
            _values,
            _failing,
            _returning,
            _saying,
            _asking,
            _starting,
            _changing,
            _checked,
            _resources,
            _folders,
            _prompts,
            _guarded,
        ):
            declare(self)

    @asynccontextmanager
    async def _lifespan(self, server: Server) -> AsyncIterator[str]:
        with TemporaryDirectory(prefix="fixture-") as folder:
            self.docs = Path(folder) / "docs"
            self.docs.mkdir()
            (self.docs / "a.txt").write_text("inside", "utf-8")
            (self.docs.parent / "secret.txt").write_text(SECRET, "utf-8")
            self.journal.note("opened")
            yield "open"
            self.journal.note("cleaned up")

    def _guard(self) -> Authorizer:
        @nonblocking
        def decides(
            name: str, arguments: Mapping[str, object], context: AuthorizationContext
        ) -> Decision:
            if name in DISABLED or (name in GUARDED and context["principal"] not in ADMINS):
                return deny("not allowed")
            if name == "ask_first":
                return ask("Run ask_first?")
            if self.knobs.closed and self.server.registry.tool(name) is None:
                return deny("not allowed")
            return allow()

        return decides

    def _read_guard(self) -> Authorizer:
        @nonblocking
        def decides(
            name: str, arguments: Mapping[str, object], context: AuthorizationContext
        ) -> Decision:
            if "admin" in json.dumps(arguments) and context["principal"] not in ADMINS:
                return deny("not allowed")
            if self.knobs.closed and not _known(self.server, arguments):
                return deny("not allowed")
            return allow()

        return decides


def _known(server: Server, arguments: Mapping[str, object]) -> bool:
    """Say whether a read names nothing, or something that is there."""
    registry = server.registry
    ref = arguments.get("ref")
    named = ref if isinstance(ref, dict) else arguments
    uri, name = named.get("uri"), named.get("name")
    if isinstance(uri, str):
        listed = any(template.uri_template == uri for template in registry.templates())
        return listed or registry.resource(uri) is not None
    return not isinstance(name, str) or registry.prompt(name) is not None


def _plain(fixture: Fixture) -> None:
    server, note = fixture.server, fixture.journal.note

    @server.tool
    async def echo(text: str) -> str:
        """Return the text unchanged."""
        note(f"start:echo:{text[:20]}")
        return text

    @server.tool
    async def sleep(ms: int, tag: str) -> str:
        """Wait, unless cancelled."""
        note(f"start:sleep:{tag}")
        try:
            await asyncio.sleep(ms / 1000)
        except asyncio.CancelledError:
            note(f"cancelled:{tag}")
            raise
        note(f"end:sleep:{tag}")
        return tag

    @server.tool
    def sync_block(ms: int) -> str:
        """Block a thread."""
        note("start:sync_block:")
        time.sleep(ms / 1000)
        note("end:sync_block:")
        return "done"


def _values(fixture: Fixture) -> None:
    server = fixture.server

    @server.tool
    async def journal() -> list[str]:
        """Return what ran."""
        return list(fixture.journal.lines)

    @server.tool
    async def big(bytes: int) -> str:
        """Return so many letters."""
        return "A" * bytes

    @server.tool
    async def no_args() -> str:
        """Take nothing."""
        return "ran"

    @server.tool
    async def img() -> Image:
        """Return all bytes."""
        return Image(BYTES, "image/png")

    @server.tool
    async def start_job(text: str) -> str:
        """Keep a text and return its handle."""
        jobs.append(text)
        return str(len(jobs) - 1)

    @server.tool
    async def get_job(handle: str) -> str:
        """Return the text of a handle."""
        if not handle.isdecimal() or int(handle) >= len(jobs):
            raise ToolError("no such job")
        return jobs[int(handle)]

    jobs: list[str] = []


def _failing(fixture: Fixture) -> None:
    server = fixture.server

    @server.tool
    async def boom() -> str:
        """Raise."""
        raise RuntimeError("ordinary")

    @server.tool
    async def boom_secret() -> str:
        """Raise with something in the text that is nobody's business."""
        try:
            raise ValueError("postgres://app:hunter2@db.internal/prod")
        except ValueError as error:
            raise RuntimeError("cannot reach postgres://app:hunter2@db.internal/prod") from error

    @server.tool
    async def tool_error() -> str:
        """Say something to the caller."""
        raise ToolError("try another city")

    @server.tool
    async def exits() -> str:
        """Raise what ends a program."""
        raise SystemExit(7)

    @server.tool
    async def cancels_itself() -> str:
        """Raise what ends a task."""
        raise asyncio.CancelledError


def _returning(fixture: Fixture) -> None:
    server = fixture.server

    @server.tool
    async def returns_none() -> None:
        """Return nothing."""

    @server.tool
    async def out(mode: str) -> object:
        """Return a value chosen by mode; many cannot be sent."""
        return ODD_VALUES[mode]()

    @server.tool
    async def out_array(mode: str) -> list[int]:
        """Promise a list of integers and keep the promise, or not."""
        return ["one"] if mode == "wrong" else [1, 2]  # type: ignore[list-item]  # on purpose

    @server.tool
    async def out_point(mode: str) -> Point:
        """Promise a point."""
        return "no point" if mode == "wrong" else Point(1, 2)  # type: ignore[return-value]  # on purpose


def _cycle() -> object:
    value: list[object] = []
    value.append(value)
    return value


def _nested() -> object:
    value: object = 1
    for _ in range(100_000):
        value = [value]
    return value


class Odd:
    """Nothing that JSON knows."""


ODD_VALUES: dict[str, Callable[[], object]] = {
    "nan": lambda: float("nan"),
    "inf": lambda: float("inf"),
    "nested_nan": lambda: {"a": [float("-inf")]},
    "lone_surrogate": lambda: "\ud83d",
    "nested_surrogate": lambda: {"a": "\udc00"},
    "surrogate_key": lambda: {"\udc00": 1},
    "bytes": lambda: b"\xff\x00",
    "cycle": _cycle,
    "deep": _nested,
    "int_2_70": lambda: 2**70,
    "int_2_63": lambda: 2**63,
    "nonstring_keys": lambda: {1: "a", None: "b"},
    "set": lambda: {1},
    "datetime": lambda: datetime(2026, 7, 28, tzinfo=UTC),
    "object": Odd,
    "class": lambda: Odd,
    "generator": lambda: (n for n in range(3)),
    "exception": lambda: ValueError("x"),
    "plain": lambda: {"a": 1},
}


def _saying(fixture: Fixture) -> None:
    server = fixture.server

    @server.tool
    async def progress(
        n: int, delay_ms: int, context: Context, values: list[float] | None = None
    ) -> str:
        """Send n progress notifications, the last right before returning."""
        for at, value in enumerate(values if values is not None else range(1, n + 1)):
            if at and delay_ms:
                await asyncio.sleep(delay_ms / 1000)
            context.progress(value, total=float(n), message=f"step {value}")
        return "done"

    @server.tool
    async def logs(context: Context, n: int = 0, levels: list[Level] | None = None) -> str:
        """Emit n log messages, or one for each level."""
        for level in levels if levels is not None else ["info"] * n:
            context.log(level, {"level": level}, logger="fixture")  # type: ignore[arg-type]  # one of Level
        return "done"


def _asking(fixture: Fixture) -> None:
    server, note = fixture.server, fixture.journal.note
    form: dict[str, object] = {
        "type": "object",
        "properties": {"answer": {"type": "string"}},
        "required": ["answer"],
    }

    @server.tool(name="ask")
    async def ask_one(q: str, context: Context) -> object:
        """Put a question of the tool's own and return the answer as it came."""
        if context.round == 0:
            note("start:ask:")
            return InputRequired({"q": Elicit(q, form)})
        note("end:ask:")
        return {"answered": context.answers.get("q")}

    @server.tool
    async def ask_midway(q: str, context: Context) -> str:
        """Ask in the middle of the work."""
        answer = await context.elicit(q, form)
        return f"{answer.action} {json.dumps(answer.content)}"

    @server.tool
    async def ask_two(
        first: Annotated[Confirm, Ask("First?")], second: Annotated[Confirm, Ask("Second?")]
    ) -> str:
        """Put two questions."""
        return f"{first.confirm} {second.confirm}"

    @server.tool
    async def ask_age(person: Annotated[Person, Ask("How old?")]) -> str:
        """Put a question whose answer has bounds."""
        note(f"start:ask_age:{person.age}")
        return f"{person.age} {person.color}"

    async def deletes(target: str, confirm: Annotated[Confirm, Ask("Delete {target}?")]) -> str:
        if not confirm.confirm:
            return "kept"
        note(f"deleted:{target}")
        return "deleted"

    server.tool(name="confirm_delete", description="Delete.", destructive=True)(deletes)
    server.tool(name="other_tool", description="Delete as well.", destructive=True)(deletes)

    @server.tool
    async def ask_first(target: str) -> str:
        """Run once the human has said yes to the authorizer's question."""
        note(f"deleted:{target}")
        return "deleted"


def waits_elsewhere(ms: int) -> str:
    """Wait in a process of its own."""
    time.sleep(ms / 1000)
    return "waited"


def _starting(fixture: Fixture) -> None:
    server, note = fixture.server, fixture.journal.note

    @server.tool
    def spawn(argv: list[str]) -> str:
        """Run a child with the descriptors a child gets, and return its output."""
        return subprocess.run(argv, stdout=subprocess.PIPE, check=False).stdout.decode()

    @server.tool
    def noisy() -> str:
        """Print, write to descriptor 1, let a child print, and read from stdin."""
        print("NOISE")  # noqa: T201  # what the case is about
        os.write(1, b"RAW NOISE\n")
        subprocess.run(["sh", "-c", "echo CHILD; cat"], check=True)
        sys.stdout.write("NO NEWLINE")
        return "quiet"

    server.tool(isolation="process")(waits_elsewhere)

    @server.tool
    def git_diff(target: Target) -> str:
        """Give a child process an argument of the caller's."""
        note(f"start:git_diff:{target}")
        child = subprocess.run(
            ["sh", "-c", 'printf %s "$1"', "--", target], stdout=subprocess.PIPE, check=True
        )
        return child.stdout.decode()

    @server.tool
    async def fetch(url: Url, header: Header = "") -> str:
        """Write the head of a request, as an HTTP client does."""
        note(f"start:fetch:{url}")
        return f"GET {url} HTTP/1.1\r\nX-Note: {header}\r\n\r\n"

    @server.tool
    async def read_path(path: Annotated[str, Meta(pattern=r"^[A-Za-z0-9_]+\.txt$")]) -> str:
        """Read a file of the folder by a name given as an argument."""
        return (fixture.docs / path).read_text("utf-8")


def _changing(fixture: Fixture) -> None:
    server = fixture.server

    async def nothing(arguments: Mapping[str, object], context: Context) -> str:
        return "nothing"

    @server.tool
    async def add_tool(name: str) -> str:
        """Add a tool for everybody."""
        server.registry.register(Tool(name, "Does nothing.", {"type": "object"}, nothing))
        return "added"

    @server.tool
    async def touch_resource(uri: str) -> str:
        """Tell those who want to hear it that a resource has changed."""
        server.notify("notifications/resources/updated", {"uri": uri})
        return "touched"

    @server.tool
    async def enable_more() -> str:
        """Try to change the list for one connection: there is only one list."""
        server.registry.register(Tool("more", "Does nothing.", {"type": "object"}, nothing))
        return "enabled"


def _checked(fixture: Fixture) -> None:
    server, note = fixture.server, fixture.journal.note

    @server.tool
    async def typed(s: str, n: int = 5, b: bool = False, o: Options | None = None) -> str:
        """Return what arrived."""
        note("start:typed:")
        return json.dumps([s, n, b, o is not None])

    async def header_of(arguments: Mapping[str, object], context: Context) -> str:
        note("start:hdr:")
        return json.dumps(dict(arguments), sort_keys=True)

    properties = {
        "region": {"type": "string", "x-mcp-header": "Region"},
        "count": {"type": "integer", "x-mcp-header": "Count"},
        "flag": {"type": "boolean", "x-mcp-header": "Flag"},
    }
    schema = {"type": "object", "properties": properties, "additionalProperties": False}
    server.registry.register(Tool("hdr", "Return the arguments.", schema, header_of))


def _resources(fixture: Fixture) -> None:
    server = fixture.server

    @server.resource("mem://a")
    async def a() -> str:
        """Text."""
        return "a"

    @server.resource("mem://测试")
    async def letters() -> str:
        """Text behind letters."""
        return "letters"

    @server.resource("mem://me")
    async def me(context: Context) -> str:
        """Who reads."""
        return str(context.principal)

    @server.resource("mem://bin")
    async def all_bytes() -> bytes:
        """Bytes."""
        return BYTES

    @server.resource("mem://empty")
    async def empty() -> bytes:
        """No bytes."""
        return b""

    @server.resource("mem://none")
    async def none() -> None:
        """Nothing."""

    @server.resource("mem://boom")
    async def boom() -> str:
        """Raise."""
        raise RuntimeError("postgres://app:hunter2@db.internal/prod")


def _folders(fixture: Fixture) -> None:
    server, note = fixture.server, fixture.journal.note

    @server.resource("file:///docs/{name}")
    async def doc(name: str) -> str:
        """A file of the folder."""
        note(f"start:doc:{name}")
        try:
            return (fixture.docs / name).read_text("utf-8")
        except FileNotFoundError:
            raise ToolError("no such file") from None

    @server.resource("tree://docs/{+path}")
    async def tree(path: str) -> str:
        """A file below the folder."""
        note(f"start:tree:{path}")
        try:
            return (fixture.docs / path).read_text("utf-8")
        except OSError:
            raise ToolError("no such file") from None

    @server.completion("file:///docs/{name}", "name")
    async def names(value: str) -> list[str]:
        return [path.name for path in sorted(fixture.docs.iterdir()) if path.name.startswith(value)]


def _prompts(fixture: Fixture) -> None:
    server = fixture.server

    @server.prompt
    async def greet(who: str) -> str:
        """Greet somebody."""
        return f"Say hello to {who}."

    @server.prompt(name="none")
    async def no_prompt() -> None:
        """Return nothing."""

    @server.completion("greet", "who")
    async def people(value: str) -> object:
        match value:
            case "string":
                return "abc"
            case "raise":
                raise RuntimeError("hunter2")
            case "slow":
                await asyncio.sleep(3600)
            case _:
                pass
        return [f"n{at}" for at in range(int(value[1:]))] if value[1:].isdecimal() else ["ann"]


def _guarded(fixture: Fixture) -> None:
    server, note = fixture.server, fixture.journal.note

    @server.tool
    async def admin_only() -> str:
        """For one principal."""
        note("start:admin_only:")
        return "admin"

    @server.tool
    async def off() -> str:
        """For nobody."""
        note("start:off:")
        return "off"

    async def reads(context: Context) -> str:
        note("start:mem://admin:")
        return SECRET

    server.registry.register(Resource("mem://admin", "admin", reads))

    @server.prompt
    async def admin_prompt(x: str = "") -> str:
        """For one principal."""
        note("start:admin_prompt:")
        return SECRET

    @server.completion("admin_prompt", "x")
    async def secrets(value: str) -> list[str]:
        note("start:complete:admin_prompt")
        return [SECRET]


def server() -> Server:
    """Make the server for `raxol-mcp serve`."""
    return Fixture().server


def main(argv: list[str]) -> int:
    """Serve over stdio; the exit code is 0 when the client ended it."""
    knobs = Knobs(**json.loads(argv[0])) if argv else Knobs()
    fixture = Fixture(knobs)
    ended = asyncio.run(serve_stdio(fixture.server, **knobs.stdio))  # type: ignore[arg-type]  # as Limits
    return 0 if ended in (Ended.INPUT_ENDED, Ended.OUTPUT_CLOSED) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

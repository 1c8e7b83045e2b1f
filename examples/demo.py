"""A real server with dangerous tools, and a client that this project did not write.

    make demo

Starts `files_server.py` over stdio for a folder made for the occasion and drives it with the
client of the official SDK (`mcp` on PyPI). In a terminal the question is put to you. Without one,
or with --script, a script shows what happens on a yes, on a no and on silence, in both eras of
the protocol. Every promise is checked; the exit code is 1 when one is not kept.
"""

import argparse
import asyncio
import json
import os
import sys
import tempfile
import textwrap
from collections.abc import Awaitable, Callable
from pathlib import Path

from mcp import Client, StdioServerParameters
from mcp.client.session import ClientRequestContext
from mcp_types import CallToolResult, ElicitRequestParams, ElicitResult, TextContent

SERVER = Path(__file__).with_name("files_server.py")
HANDSHAKE, STATELESS = "legacy", "2026-07-28"
# How long the person may take in the script, in seconds. By default a server gives them 60.
PATIENCE = 1.0

Answer = Callable[[str], Awaitable[ElicitResult]]

YES = ElicitResult(action="accept", content={"approve": True})
NO = ElicitResult(action="decline")


class Broken(Exception):
    """A promise that was not kept."""


def show(text: str, indent: str = "") -> None:
    """Print a text, each of its lines as a paragraph."""
    for line in text.splitlines() or [""]:
        print(
            textwrap.fill(
                line,
                96,
                initial_indent=indent,
                subsequent_indent=" " * len(indent),
                break_long_words=False,
                break_on_hyphens=False,
            )
        )
        indent = " " * len(indent)


def promise(kept: bool, sentence: str) -> None:
    """Check one promise and say so."""
    if not kept:
        raise Broken(sentence)
    show(sentence, "      ok: ")


class Session:
    """One client that talks to one server process about one folder."""

    def __init__(self, folder: Path, mode: str, *, patience: float) -> None:
        """Prepare a client of an era, `mode`; its person has `patience` seconds to answer."""
        self.folder = folder
        self._step = 0
        self._answer: Answer | None = None
        arguments = ["-m", "raxol_mcp", "serve", str(SERVER)]
        self.client = Client(
            StdioServerParameters(
                command=sys.executable,
                args=[*arguments, "--elicitation-timeout", str(patience)],
                env={**os.environ, "FILES_FOLDER": str(folder)},
            ),
            mode=mode,
            elicitation_callback=self._asked,
        )

    async def call(
        self, why: str, name: str, answer: Answer | None = None, **arguments: str
    ) -> str:
        """Call a tool, while a person who is asked gives `answer`; return the text it gave."""
        self._answer = answer
        self.step(f"{why}: {name} {json.dumps(arguments)}" if arguments else f"{why}: {name}")
        text = text_of(await self.client.call_tool(name, dict(arguments)))
        show(text, "      -> ")
        return text

    def step(self, text: str) -> None:
        """Begin the next step."""
        self._step += 1
        show(text, f"  {self._step:2}. ")

    def content(self, path: str) -> str | None:
        """Look at the disk itself: what the file holds, None when there is none."""
        file = self.folder / path
        return file.read_text("utf-8") if file.exists() else None

    async def _asked(
        self, context: ClientRequestContext, params: ElicitRequestParams
    ) -> ElicitResult:
        show(f"the server asks the person:\n{params.message}", "      ?  ")
        if self._answer is None:
            raise Broken("nobody is asked about this call")
        return await self._answer(params.message)


def text_of(result: CallToolResult) -> str:
    """Return the text of a tool's result."""
    return "\n".join(item.text for item in result.content if isinstance(item, TextContent))


async def says_yes(question: str) -> ElicitResult:
    """Approve."""
    show("the person says yes", "      !  ")
    return YES


async def says_no(question: str) -> ElicitResult:
    """Decline."""
    show("the person says no", "      !  ")
    return NO


async def you_say(question: str) -> ElicitResult:
    """Ask whoever sits at the terminal."""
    print("      !  Do you approve? [y/N] ", end="", flush=True)
    loop = asyncio.get_running_loop()
    line: asyncio.Future[str] = loop.create_future()
    # Not in a thread: one that waits for a line could not be stopped by Ctrl-C.
    loop.add_reader(sys.stdin, lambda: line.set_result(sys.stdin.readline()))
    line.add_done_callback(lambda _: loop.remove_reader(sys.stdin))
    answer = await line
    return YES if answer.strip().lower() in ("y", "yes") else NO


# -- the story --------------------------------------------------------------------------------


async def reads(session: Session) -> None:
    """Show what runs without asking, and what is refused without asking."""
    session.step("which tools are there for me? (tools/list)")
    listed = [tool.name for tool in (await session.client.list_tools()).tools]
    show(", ".join(listed), "      -> ")
    promise(
        listed == ["list_files", "read_file", "write_file"],
        "the tools that I may call, and not the one that I may not",
    )
    found = await session.call("reading runs", "list_files")
    promise("notes.txt" in found, "list_files ran at once")
    text = await session.call("so does this", "read_file", path="notes.txt")
    promise(text == "Buy milk.\n", "read_file gave the file, nobody was asked")
    for path in ("../secret.txt", str(session.folder.parent / "secret.txt"), "link/secret.txt"):
        text = await session.call("a path that leads out is refused", "read_file", path=path)
        promise("swordfish" not in text, "the secret beside the folder was not read")


async def approved(session: Session, answer: Answer, text: str = "Buy milk and bread.\n") -> bool:
    """Ask for a write; return whether it was made."""
    said = await session.call(
        "a write asks a person first", "write_file", answer, path="notes.txt", text=text
    )
    written = session.content("notes.txt") == text
    promise(written == said.startswith("wrote"), "what I was told is what is on the disk")
    return written


async def declined(session: Session) -> None:
    """Show that a no is a no."""
    said = await session.call(
        "the same with a no", "write_file", says_no, path="other.txt", text="x"
    )
    promise(session.content("other.txt") is None, "nothing was written")
    promise(json.loads(said)["error"] == "authorization_required", "and I am told that I may not")


async def unanswered(session: Session) -> None:
    """Show that silence is a no: the server waits as long as it may and denies the call."""
    late = asyncio.Event()

    async def says_nothing(question: str) -> ElicitResult:
        show(f"the person says nothing, for {PATIENCE:g} s ...", "      !  ")
        await late.wait()
        return YES

    said = await session.call(
        "the same with silence", "write_file", says_nothing, path="late.txt", text="x"
    )
    promise("timed out" in said, "silence is not consent: the call was denied")
    show("the person says yes after all, too late", "      !  ")
    late.set()
    await session.client.list_tools()  # the late answer is on the pipe in front of this
    promise(session.content("late.txt") is None, "a late yes changes nothing: nothing was written")


async def unanswered_stateless(session: Session) -> None:
    """Show silence in the stateless era: the server has handed the question over and forgotten."""

    async def says_nothing(question: str) -> ElicitResult:
        show("the person says nothing; the server holds nothing and waits for nobody", "      !  ")
        await asyncio.Event().wait()
        return YES

    call = session.call("the same with silence", "write_file", says_nothing, path="l.txt", text="x")
    try:
        await asyncio.wait_for(call, PATIENCE)
    except TimeoutError:
        show(f"(the client gives up after {PATIENCE:g} s)", "      -> ")
    promise(session.content("l.txt") is None, "silence is not consent: nothing was written")


async def denied(session: Session) -> None:
    """Show what no person can approve."""
    said = await session.call("deleting is denied by the server", "delete_file", path="notes.txt")
    promise(json.loads(said)["decision"] == "deny", "nobody is asked, it is denied")
    promise(session.content("notes.txt") is not None, "the file is still there")


async def scripted(folder: Path) -> None:
    """Tell the whole story in both eras."""
    print("\nHandshake era (MCP 2025-11-25): the call waits at the server for the person\n")
    session = Session(folder, HANDSHAKE, patience=PATIENCE)
    async with session.client:
        await reads(session)
        promise(await approved(session, says_yes), "the person agreed, so it was written")
        await declined(session)
        await unanswered(session)
        await denied(session)

    (folder / "notes.txt").write_text("Buy milk.\n", "utf-8")
    print("\nStateless era (MCP 2026-07-28): the client brings the call back with the answer\n")
    session = Session(folder, STATELESS, patience=PATIENCE)
    async with session.client:
        await reads(session)
        promise(await approved(session, says_yes), "the person agreed, so it was written")
        await declined(session)
        await unanswered_stateless(session)
        await denied(session)


async def interactive(folder: Path) -> None:
    """Tell the story with you as the person."""
    print(f"\nA server serves {folder}. The client plays a model that edits your notes.\n")
    session = Session(folder, HANDSHAKE, patience=60.0)
    async with session.client:
        await reads(session)
        if await approved(session, you_say):
            show("You agreed, so it was written.", "  ")
        else:
            show("You did not agree, so nothing was written.", "  ")
        await denied(session)
    print("\nTo see silence and the other era too: make demo </dev/null")


def prepared(place: Path) -> Path:
    """Make the folder, a secret beside it, and a link in it that leads out."""
    folder = place / "folder"
    folder.mkdir()
    (folder / "notes.txt").write_text("Buy milk.\n", "utf-8")
    (folder / "link").symlink_to("..")
    (place / "secret.txt").write_text("swordfish", "utf-8")
    return folder


def broken_in(error: BaseException) -> Broken | None:
    """Find the broken promise in what the SDK's task groups made of it."""
    if isinstance(error, BaseExceptionGroup):
        return next((found for inner in error.exceptions if (found := broken_in(inner))), None)
    return error if isinstance(error, Broken) else None


def main() -> int:
    """Run the demo; return the exit code."""
    parser = argparse.ArgumentParser(description="Drive files_server.py with the official client.")
    parser.add_argument("--script", action="store_true", help="ask nobody, show every answer")
    options = parser.parse_args()
    at_terminal = sys.stdin.isatty() and sys.stdout.isatty()
    story = interactive if at_terminal and not options.script else scripted
    try:
        with tempfile.TemporaryDirectory(prefix="raxol-mcp-demo-") as place:
            asyncio.run(story(prepared(Path(place))))
    except KeyboardInterrupt:
        return 130
    except (Broken, ExceptionGroup) as error:
        broken = broken_in(error)
        if broken is None:
            raise
        print(f"\nNOT AS PROMISED: {broken}")
        return 1
    print("\nEverything was as promised.")
    return 0


if __name__ == "__main__":
    sys.exit(main())

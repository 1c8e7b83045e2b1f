"""A real server with dangerous tools, and the client of this project, talking.

    make demo

Starts `files_server.py` for a folder made for the occasion and drives it with `raxol_mcp.Client`.
In a terminal the question is put to you. Without one, or with --script, a script shows what
happens on a yes, on a no and on silence, in both eras of the protocol; over stdio, over HTTP, and
from the command line. Every promise is checked; the exit code is 1 when one is not kept.
"""

import argparse
import asyncio
import json
import os
import sys
import tempfile
import textwrap
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from raxol_mcp import Accept, Client, Decline, ElicitRequest

SERVER = Path(__file__).with_name("files_server.py")
COMMAND = [sys.executable, "-m", "raxol_mcp"]
# How long the person may take in the script, in seconds. By default a server gives them 60.
PATIENCE = 1.0

Answer = Callable[[str], Awaitable[Accept | Decline]]

YES = Accept({"approve": True})
NO = Decline()


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
    """One client that talks to a server about one folder."""

    def __init__(self, folder: Path, **spec: object) -> None:
        """Prepare a client of the server that `spec` names."""
        self.folder = folder
        self._step = 0
        self._answer: Answer | None = None
        self._asked_in_vain = False
        self.client = Client({"name": "files", **spec}, elicitation=self._asked)

    @classmethod
    def over_stdio(cls, folder: Path, *, era: str, patience: float) -> "Session":
        """Prepare a client with a server of its own, whose person has `patience` seconds."""
        program, *arguments = [*COMMAND, "serve", str(SERVER)]
        return cls(
            folder,
            command=program,
            args=[*arguments, "--elicitation-timeout", str(patience)],
            env={"FILES_FOLDER": str(folder)},
            era=era,
        )

    async def call(
        self, why: str, name: str, answer: Answer | None = None, **arguments: str
    ) -> str:
        """Call a tool, while a person who is asked gives `answer`; return the text it gave."""
        self._answer = answer
        self.step(f"{why}: {name} {json.dumps(arguments)}" if arguments else f"{why}: {name}")
        text = (await self.client.call_tool(name, arguments)).text
        show(text, "      -> ")
        if self._asked_in_vain:
            raise Broken("nobody is asked about this call")
        return text

    def step(self, text: str) -> None:
        """Begin the next step."""
        self._step += 1
        show(text, f"  {self._step:2}. ")

    def content(self, path: str) -> str | None:
        """Look at the disk itself: what the file holds, None when there is none."""
        file = self.folder / path
        return file.read_text("utf-8") if file.exists() else None

    async def _asked(self, request: ElicitRequest) -> Accept | Decline:
        show(f"{request.server} asks the person:\n{request.message}", "      ?  ")
        if self._answer is None:
            self._asked_in_vain = True
            return NO
        return await self._answer(request.message)


async def says_yes(question: str) -> Accept | Decline:
    """Approve."""
    show("the person says yes", "      !  ")
    return YES


async def says_no(question: str) -> Accept | Decline:
    """Decline."""
    show("the person says no", "      !  ")
    return NO


async def you_say(question: str) -> Accept | Decline:
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
    listed = [tool.name for tool in await session.client.list_tools()]
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

    async def says_nothing(question: str) -> Accept | Decline:
        show(f"the person says nothing, for {PATIENCE:g} s ...", "      !  ")
        await late.wait()
        return YES

    said = await session.call(
        "the same with silence", "write_file", says_nothing, path="late.txt", text="x"
    )
    promise("timed out" in said, "silence is not consent: the call was denied")
    show("the person says yes after all, too late", "      !  ")
    late.set()
    # Were there a late answer, it would be on the pipe in front of this.
    await session.client.list_tools(refresh=True)
    promise(session.content("late.txt") is None, "a late yes changes nothing: nothing was written")


async def unanswered_stateless(session: Session) -> None:
    """Show silence in the stateless era: the server has handed the question over and forgotten."""

    async def says_nothing(question: str) -> Accept | Decline:
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
    """Tell the whole story in both eras, and parts of it over HTTP and on the command line."""
    print("\nHandshake era (MCP 2025-11-25): the call waits at the server for the person\n")
    session = Session.over_stdio(folder, era="handshake", patience=PATIENCE)
    async with session.client:
        await reads(session)
        promise(await approved(session, says_yes), "the person agreed, so it was written")
        await declined(session)
        await unanswered(session)
        await denied(session)

    (folder / "notes.txt").write_text("Buy milk.\n", "utf-8")
    print("\nStateless era (MCP 2026-07-28): the client brings the call back with the answer\n")
    session = Session.over_stdio(folder, era="stateless", patience=PATIENCE)
    async with session.client:
        await reads(session)
        promise(await approved(session, says_yes), "the person agreed, so it was written")
        await declined(session)
        await unanswered_stateless(session)
        await denied(session)

    (folder / "notes.txt").write_text("Buy milk.\n", "utf-8")
    print("\nOver HTTP: the same server, the same promises\n")
    async with served(folder) as url:
        session = Session(folder, url=url, allow_private=True)
        async with session.client:
            promise(await approved(session, says_yes), "the person agreed, so it was written")
            await declined(session)

    print("\nFrom the command line, in a script that nobody watches\n")
    await commanded(folder)


@asynccontextmanager
async def served(folder: Path) -> AsyncIterator[str]:
    """Serve the folder over HTTP, and give the address."""
    guards = ["--allow-reads", "tools/list", "--allow-tools", "list_files,read_file,write_file"]
    process = await asyncio.create_subprocess_exec(
        *(*COMMAND, "serve", str(SERVER), "--http", "--port", "0", *guards),
        stderr=PIPE,
        env={**os.environ, "FILES_FOLDER": str(folder)},
    )
    try:
        assert process.stderr is not None, "it is a pipe"
        line = (await process.stderr.readline()).decode()
        show(line.strip(), "  ")
        yield line.split()[-1]
    finally:
        process.terminate()
        await process.wait()


async def commanded(folder: Path) -> None:
    """Use the server as a shell script would: it cannot ask anybody, so it is told no."""

    async def run(*arguments: str) -> tuple[int | None, str]:
        show(f"$ raxol-mcp {' '.join(arguments)} -- python files_server.py FOLDER", "  ")
        process = await asyncio.create_subprocess_exec(
            *(*COMMAND, *arguments, "--", sys.executable, str(SERVER), str(folder)),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=PIPE,
            stderr=PIPE,
        )
        out, err = await process.communicate()
        show((err + out).decode().strip(), "      -> ")
        return process.returncode, out.decode()

    found = await run("call", "read_file", "path=notes.txt")
    promise(found == (0, "Buy milk and bread.\n"), "the result alone is on stdout, and exit code 0")
    code, _ = await run("call", "write_file", "path=script.txt", "text=x")
    promise(code == 3, "the question was declined, and the exit code says so")
    promise(not (folder / "script.txt").exists(), "nothing was written")
    code, _ = await run("call", "write_file", "path=s.txt", "text=x", "--answer", "approve=true")
    promise((folder / "s.txt").exists() and code == 0, "a script may agree to one question")


async def interactive(folder: Path) -> None:
    """Tell the story with you as the person."""
    print(f"\nA server serves {folder}. The client plays a model that edits your notes.\n")
    session = Session.over_stdio(folder, era="handshake", patience=60.0)
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


def main() -> int:
    """Run the demo; return the exit code."""
    parser = argparse.ArgumentParser(description="Drive files_server.py with raxol-mcp's client.")
    parser.add_argument("--script", action="store_true", help="ask nobody, show every answer")
    options = parser.parse_args()
    at_terminal = sys.stdin.isatty() and sys.stdout.isatty()
    story = interactive if at_terminal and not options.script else scripted
    try:
        with tempfile.TemporaryDirectory(prefix="raxol-mcp-demo-") as place:
            asyncio.run(story(prepared(Path(place))))
    except KeyboardInterrupt:
        return 130
    except Broken as broken:
        print(f"\nNOT AS PROMISED: {broken}")
        return 1
    print("\nEverything was as promised.")
    return 0


if __name__ == "__main__":
    sys.exit(main())

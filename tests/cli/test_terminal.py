"""Reading what a person types, at a real pseudo-terminal."""

import asyncio
import io
import os
import sys
from collections.abc import Awaitable, Callable
from typing import TypeVar

import pytest

from raxol_mcp.cli.screen import Screen
from raxol_mcp.cli.terminal import GaveUp, Terminal
from tests.cli.pseudo_terminal import TIMEOUT, PseudoTerminal, pseudo_terminal

T = TypeVar("T")

Scenario = Callable[[Terminal, PseudoTerminal], Awaitable[T]]


def at_a_terminal(scenario: Scenario[T]) -> T:
    """Run a scenario, and see that nothing reads the terminal afterwards."""

    async def run(person: PseudoTerminal) -> T:
        terminal = Terminal(Screen(person.stream, is_terminal=True), person.fd)
        async with asyncio.timeout(TIMEOUT):
            result = await scenario(terminal, person)
        assert not asyncio.get_running_loop().remove_reader(person.fd)
        return result

    with pseudo_terminal() as person:
        return asyncio.run(run(person))


def test_a_line_is_read_while_the_loop_goes_on() -> None:
    async def scenario(terminal: Terminal, person: PseudoTerminal) -> str:
        async with terminal.question():
            line = asyncio.ensure_future(terminal.line("name: "))
            await person.sees("name: ")
            person.types("Ada")
            await asyncio.sleep(0)
            assert not line.done()
            person.types(" Lovelace é\n")
            return await line

    assert at_a_terminal(scenario) == "Ada Lovelace é"


def test_what_was_typed_before_the_question_is_no_answer() -> None:
    """ours: docs/cli.md. Nobody agrees to what they have not seen."""

    async def scenario(terminal: Terminal, person: PseudoTerminal) -> str:
        person.types("y\n")
        async with terminal.question():
            line = asyncio.ensure_future(terminal.line("sure? "))
            await person.sees("sure? ")
            person.types("no\n")
            return await line

    assert at_a_terminal(scenario) == "no"


def test_lines_pasted_at_once_answer_one_after_the_other_but_not_the_next_question() -> None:
    async def scenario(terminal: Terminal, person: PseudoTerminal) -> list[str]:
        async with terminal.question():
            first = asyncio.ensure_future(terminal.line("a: "))
            await person.sees("a: ")
            person.types("1\n2\n3\n")
            lines = [await first, await terminal.line("b: ")]
        async with terminal.question():
            third = asyncio.ensure_future(terminal.line("c: "))
            await person.sees("c: ")
            person.types("other\n")
            return [*lines, await third]

    assert at_a_terminal(scenario) == ["1", "2", "other"]


@pytest.mark.parametrize("give_up", ["\x04", "Ctrl-C"])
def test_a_person_may_leave_a_question_unanswered(give_up: str) -> None:
    async def scenario(terminal: Terminal, person: PseudoTerminal) -> str:
        async with terminal.question():
            line = asyncio.ensure_future(terminal.line("sure? "))
            await person.sees("sure? ")
            if give_up == "Ctrl-C":
                assert terminal.interrupted()
                assert not terminal.interrupted(), "one Ctrl-C ends one question"
            else:
                person.types(give_up)
            with pytest.raises(GaveUp):
                await line
        await person.sees("\n")
        return "given up"

    assert at_a_terminal(scenario) == "given up"


def test_ctrl_c_without_a_question_is_somebody_elses() -> None:
    async def scenario(terminal: Terminal, person: PseudoTerminal) -> bool:
        return terminal.interrupted()

    assert at_a_terminal(scenario) is False


def test_a_question_can_be_withdrawn_and_the_next_one_works() -> None:
    """MCP 2025-11-25 basic/utilities/cancellation: the server no longer waits."""

    async def scenario(terminal: Terminal, person: PseudoTerminal) -> str:
        async def ask(prompt: str) -> str:
            async with terminal.question():
                return await terminal.line(prompt)

        first = asyncio.ensure_future(ask("first? "))
        await person.sees("first? ")
        second = asyncio.ensure_future(ask("second? "))
        await asyncio.sleep(0)
        first.cancel()
        await person.sees("second? ")
        assert first.cancelled()
        person.types("here\n")
        return await second

    assert at_a_terminal(scenario) == "here"


def test_a_terminal_that_is_gone_is_no_answer() -> None:
    async def scenario(terminal: Terminal, person: PseudoTerminal) -> str:
        async with terminal.question():
            line = asyncio.ensure_future(terminal.line("sure? "))
            await person.sees("sure? ")
            os.dup2(os.open(os.devnull, os.O_RDONLY), person.master)
            with pytest.raises(GaveUp):
                await line
        return "gone"

    assert at_a_terminal(scenario) == "gone"


def test_a_line_without_end_is_no_answer() -> None:
    """K12. A terminal out of canonical mode may send one."""
    reading, writing = os.pipe()

    async def scenario() -> None:
        terminal = Terminal(Screen(io.StringIO(), is_terminal=True), reading)
        async with asyncio.timeout(TIMEOUT), terminal.question():
            line = asyncio.ensure_future(terminal.line("? "))
            await asyncio.sleep(0)
            while not line.done():
                os.write(writing, b"x" * 4096)
                await asyncio.sleep(0)
            with pytest.raises(GaveUp):
                await line

    asyncio.run(scenario())
    os.close(reading)
    os.close(writing)


@pytest.mark.parametrize(
    ("typed", "agreed"),
    [
        ("y\n", True),
        (" YES \n", True),
        ("\n", False),
        ("n\n", False),
        ("No\n", False),
        ("ja\nyep\n1\n", False),
        ("ja\ny\n", True),
        ("yess\nyes please\nyes\n", True),
    ],
)
def test_only_a_typed_yes_is_one(typed: str, agreed: bool) -> None:
    async def scenario(terminal: Terminal, person: PseudoTerminal) -> bool:
        async with terminal.question():
            answer = asyncio.ensure_future(terminal.yes("sure?"))
            await person.sees("sure? [y/N] ")
            person.types(typed)
            return await answer

    assert at_a_terminal(scenario) is agreed


def test_there_is_a_person_only_where_input_and_errors_are_a_terminal(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pseudo_terminal() as person, open(person.fd, closefd=False) as stdin:
        shown = Screen(person.stream, is_terminal=True)
        monkeypatch.setattr(sys, "__stdin__", stdin)
        assert Terminal.of_process(shown) is not None
        assert Terminal.of_process(Screen(io.StringIO(), is_terminal=False)) is None
        with open(os.devnull) as nothing:
            monkeypatch.setattr(sys, "__stdin__", nothing)
            assert Terminal.of_process(shown) is None
        assert Terminal.of_process(shown) is None, "closed"
        monkeypatch.setattr(sys, "__stdin__", None)
        assert Terminal.of_process(shown) is None

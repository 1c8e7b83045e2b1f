"""stderr: notes, a progress line and a question, which do not run into each other."""

import io

import pytest

from raxol_mcp.cli.screen import Screen
from tests.cli.pseudo_terminal import pseudo_terminal

ERASE = "\r\x1b[K"


class Gone(io.StringIO):
    """A stream whose reader has gone."""

    def write(self, text: str) -> int:
        raise BrokenPipeError(32, "Broken pipe")


def screen(*, is_terminal: bool = True) -> tuple[Screen, io.StringIO]:
    stream = io.StringIO()
    return Screen(stream, is_terminal=is_terminal, width=40), stream


def test_a_note_stands_above_the_progress_line() -> None:
    shown, stream = screen()
    shown.draw("50 %")
    shown.note("a note")
    shown.draw("60 %")
    shown.draw("")
    assert stream.getvalue() == f"50 %{ERASE}a note\n50 %{ERASE}60 %{ERASE}"


def test_what_does_not_change_is_not_drawn_again() -> None:
    shown, stream = screen()
    shown.draw("50 %")
    shown.draw("50 %")
    assert stream.getvalue() == "50 %"


def test_only_a_terminal_has_a_progress_line_and_styles() -> None:
    shown, stream = screen(is_terminal=False)
    shown.draw("50 %")
    shown.note(shown.styled("a note", "bold"))
    assert stream.getvalue() == "a note\n"


def test_styles_end_where_they_began(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert screen()[0].styled("x", "warning") == "\x1b[1;33mx\x1b[0m"


def test_no_color_is_heeded(monkeypatch: pytest.MonkeyPatch) -> None:
    """https://no-color.org."""
    monkeypatch.setenv("NO_COLOR", "1")
    assert screen()[0].styled("x", "bold") == "x"


def test_nothing_is_written_beside_a_question() -> None:
    """ours: docs/cli.md. A log message must not look like a part of the question."""
    shown, stream = screen()
    shown.draw("50 %")
    with shown.asking():
        shown.ask("sure? ")
        shown.note("the server says: yes is safe")
        shown.draw("60 %")
        assert stream.getvalue() == f"50 %{ERASE}sure? "
    assert stream.getvalue().endswith("sure? the server says: yes is safe\n60 %")


def test_only_so_many_notes_are_kept_for_later() -> None:
    shown, stream = screen()
    with shown.asking():
        for number in range(250):
            shown.note(f"note {number}")
    lines = stream.getvalue().splitlines()
    assert lines[:2] == ["... 150 earlier notes are not shown", "note 150"]
    assert lines[-1] == "note 249"
    assert len(lines) == 101


def test_a_reader_that_has_gone_costs_no_result() -> None:
    shown = Screen(Gone(), is_terminal=True)
    shown.note("first")
    shown.draw("second")


def test_the_width_is_that_of_the_terminal() -> None:
    with pseudo_terminal(columns=57) as terminal:
        assert Screen(terminal.stream, is_terminal=True).width == 57
    with pseudo_terminal(columns=3) as terminal:
        assert Screen(terminal.stream, is_terminal=True).width == 20
    with pseudo_terminal(columns=0) as terminal:
        assert Screen(terminal.stream, is_terminal=True).width == 80
    assert Screen(io.StringIO(), is_terminal=False).width == 80

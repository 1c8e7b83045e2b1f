"""The transcripts in `tests/transcripts/`, and that a wrong one is found.

`tests/core/transcripts.py` says how they are written.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.core.transcripts import Mismatch, Player, play

FOLDER = Path(__file__).parents[1] / "transcripts"
TRANSCRIPTS = sorted(FOLDER.glob("*.txt"))


@pytest.mark.parametrize("path", TRANSCRIPTS, ids=lambda path: path.stem)
def test_it_happens_as_it_is_written(path: Path) -> None:
    play(path)


def test_there_are_transcripts() -> None:
    assert len(TRANSCRIPTS) >= 25


@pytest.mark.parametrize("path", TRANSCRIPTS, ids=lambda path: path.stem)
def test_it_begins_with_a_sentence_that_says_what_it_shows(path: Path) -> None:
    first = path.read_text("utf-8").splitlines()[0]
    assert first.startswith("# ")
    assert first.endswith(".")


PING = '> {"id": 1, "method": "ping"}'
CALL = '> {"id": 1, "method": "tools/call", "params": {"name": "t"}}'


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        (f"open\n{PING}", "nobody wrote down"),
        (f"open\n{PING}\n{PING}", "nobody wrote down"),
        (f"open\n{PING}\n= 1 connections", "nobody wrote down"),
        (f'open\n{PING}\n< {{"id": 1, "result": {{"x": 1}}}}', "there was"),
        (f'open\n{PING}\n< {{"id": "1", "result": {{}}}}', "there was"),
        (f'open\n{PING}\n< {{"id": true, "result": {{}}}}', "there was"),
        (f'open\n{PING}\n< {{"id": 1}}', "there was"),
        (f'open\n{PING}\nb< {{"id": 1, "result": {{}}}}', "there was"),
        (f'open\n{PING}\n< {{"id": 1, "result": {{}}}}\n< {{}}', "nothing else has happened"),
        (f'open\n{PING}\nreply< {{"id": 1, "result": {{}}}}', "there was"),
        (f'open\nrequest{PING}\nreply< {{"id": 2, "result": {{}}}}', "there was"),
        (f"open\n{CALL}\n* 2 starts", "there was"),
        (f"open\n{CALL}\n* 1 runs", "there was"),
        (f"open\n{CALL}\n* 1 is stopped", "there was"),
        (f"open\n{CALL}\n* noted busy", "there was"),
        (f"open\n{CALL}\n* 1 hears k nothing", "there was"),
        ("= 1 connections | 0 in flight | 0 parked | 0 deadlines", "it is <ServerCore 0"),
    ],
)
def test_a_transcript_that_is_not_what_happens_fails(text: str, wrong: str) -> None:
    with pytest.raises(Mismatch, match=wrong):
        Player().play(text)


@pytest.mark.parametrize(
    "text",
    [
        "nonsense",
        "?",
        "!dance",
        f"open\n{CALL}\n* 1 starts\nworker 1 dances",
        f"open\n{CALL}\n* 1 starts\ntool 1 dances",
        f"open\n{CALL}\n* 1 dances k x",
        f"open\n{CALL}\n* 1 starts\nworker",
        "hello a b c",
        '> {"id": "$UNKNOWN", "method": "ping"}',
    ],
)
def test_a_line_that_says_nothing_fails(text: str) -> None:
    with pytest.raises(AssertionError) as failed:
        Player().play(text)
    assert not isinstance(failed.value, Mismatch)
    assert failed.value.__notes__[0].startswith("line ")


def test_a_name_means_the_same_wherever_it_stands() -> None:
    player = Player()
    player.play(f'$ONE = 1\nopen\n{PING}\n< {{"id": "$ONE", "result": "$WHAT"}}')
    assert player.names == {"$ONE": 1, "$WHAT": {}}
    with pytest.raises(Mismatch, match="there was"):
        Player().play(f'$TWO = 2\nopen\n{PING}\n< {{"id": "$TWO", "result": {{}}}}')


def test_members_may_be_left_out_where_it_says_so() -> None:
    Player().play(f'open\n{PING}\n< {{"id": 1, "...": "..."}}')
    with pytest.raises(Mismatch, match="there was"):
        Player().play(f'open\n{PING}\n< {{"id": 1, "error": {{}}, "...": "..."}}')

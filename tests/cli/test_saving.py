"""`--output`: where what a server gave is written."""

import base64
import io
import os
import sys
from pathlib import Path

import click
import pytest

from raxol_mcp.cli.saving import Part, parts_of_contents, parts_of_result, save
from raxol_mcp.errors import ConfigurationError
from tests.cli.pseudo_terminal import pseudo_terminal


def encoded(content: bytes) -> str:
    return base64.b64encode(content).decode()


IMAGE = {"type": "image", "data": encoded(b"\x89PNG"), "mimeType": "image/png"}
SOUND = {"type": "audio", "data": encoded(b"sound"), "mimeType": "audio/x-../../odd"}
FILE = {"type": "resource", "resource": {"uri": "file:///../../x", "blob": encoded(b"blob")}}
TEXT = {"type": "text", "text": "a text"}


def test_what_is_no_text_is_found_in_a_result() -> None:
    assert parts_of_result([TEXT, IMAGE, SOUND, FILE, {"type": "odd", "data": 7}]) == {
        1: Part(b"\x89PNG", "image/png"),
        2: Part(b"sound", "audio/x-../../odd"),
        3: Part(b"blob", "application/octet-stream"),
    }


def test_of_a_resource_texts_are_written_too() -> None:
    contents = [
        {"uri": "a", "text": "é", "mimeType": "Text/HTML; charset=x"},
        {"uri": "b", "blob": encoded(b"b")},
    ]
    assert parts_of_contents(contents) == {
        0: Part("é".encode(), "text/html"),
        1: Part(b"b", "application/octet-stream"),
    }


def test_data_that_is_none_is_told() -> None:
    with pytest.raises(ConfigurationError, match="not base64"):
        parts_of_result([{**IMAGE, "data": "?"}])


def test_one_thing_is_written_to_a_file_that_may_be_there(tmp_path: Path) -> None:
    target = tmp_path / "a.png"
    target.write_bytes(b"something longer")
    assert save({1: Part(b"new", "image/png")}, str(target)) == {1: str(target)}
    assert target.read_bytes() == b"new"


def test_in_a_folder_names_are_ours(tmp_path: Path) -> None:
    """K26. No name and no extension of a file comes from a server."""
    saved = save(parts_of_result([TEXT, IMAGE, SOUND, FILE]), str(tmp_path))
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {
        "content-2.png": b"\x89PNG",
        "content-3.bin": b"sound",
        "content-4.bin": b"blob",
    }
    assert saved[1] == str(tmp_path / "content-2.png")


def test_in_a_folder_nothing_is_replaced_and_no_link_is_followed(tmp_path: Path) -> None:
    """K26."""
    folder, victim = tmp_path / "folder", tmp_path / "victim"
    folder.mkdir()
    (folder / "content-1.png").symlink_to(victim)
    with pytest.raises(ConfigurationError, match="cannot be written: File exists"):
        save({0: Part(b"x", "image/png")}, f"{folder}{os.sep}")
    assert not victim.exists()


@pytest.mark.parametrize(
    ("parts", "target", "told"),
    [
        ({}, "x", "--output has nothing to write"),
        ({0: Part(b"", "a"), 1: Part(b"", "a")}, "x", "gave 2 things to write: name a folder"),
        ({0: Part(b"", "a"), 1: Part(b"", "a")}, "-", "gave 2 things to write: name a folder"),
        ({0: Part(b"", "a")}, "none/x", "none/x cannot be written: No such file"),
    ],
)
def test_what_cannot_be_written_is_told(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    parts: dict[int, Part],
    target: str,
    told: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises((ConfigurationError, click.UsageError), match=told):
        save(parts, target)


def test_bytes_go_to_stdout_as_they_are_but_not_to_a_terminal(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stdout = io.TextIOWrapper(io.BytesIO())
    monkeypatch.setattr(sys, "stdout", stdout)
    assert save({0: Part(b"\x00\xff", "a/b")}, "-") == {0: "stdout"}
    assert stdout.buffer.getvalue() == b"\x00\xff"
    with pseudo_terminal() as terminal:
        monkeypatch.setattr(sys, "stdout", terminal.stream)
        with pytest.raises(click.UsageError, match="not to a terminal"):
            save({0: Part(b"\x1b[2J", "a/b")}, "-")

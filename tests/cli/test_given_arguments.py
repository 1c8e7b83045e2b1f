"""Arguments as a person writes them."""

import io
import sys
from pathlib import Path

import click
import pytest

from raxol_mcp.cli.given_arguments import (
    MAX_BYTES,
    json_arguments,
    pairs_of,
    text_arguments,
    typed_arguments,
)

SCHEMA = {
    "type": "object",
    "properties": {
        "text": {"type": "string"},
        "count": {"type": "integer"},
        "ratio": {"type": "number"},
        "deep": {"type": "boolean"},
        "tags": {"type": "array"},
        "place": {"type": "object"},
        "either": {"type": ["integer", "null"]},
        "maybe": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
        "loose": {"anyOf": [{"type": "integer"}, {}]},
        "name": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        "level": {"enum": [1, 2]},
        "flag": {"const": True},
        "colour": {"$ref": "#/$defs/colour"},
        "far": {"$ref": "https://example.com/schema"},
        "round": {"$ref": "#/$defs/round"},
        "odd~/name": {"$ref": "#/properties/odd~0~1name/of"},
        "plain": {},
        "wrong": 7,
    },
    "$defs": {
        "colour": {"oneOf": [{"const": 1}, {"const": 2.5}]},
        "round": {"$ref": "#/$defs/round"},
    },
}


def typed(*texts: str) -> dict[str, object]:
    return typed_arguments(pairs_of(texts), SCHEMA)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("text=5", "5"),
        ("text=", ""),
        ("text=a=b", "a=b"),
        ("count=5", 5),
        ("count=5.0", 5.0),
        ("ratio=5", 5),
        ("ratio=0.5", 0.5),
        ("deep=true", True),
        ('tags=["a",1]', ["a", 1]),
        ('place={"x": 1}', {"x": 1}),
        ("either=null", None),
        ("maybe=3", 3),
        ("loose=3", "3"),
        ("name=null", "null"),
        ("level=2", 2),
        ("flag=true", True),
        ("colour=2.5", 2.5),
        ("far=5", "5"),
        ("round=5", "5"),
        ("plain=5", "5"),
        ("wrong=5", "5"),
        ("unknown=5", "5"),
        ("text:=5", 5),
        ("unknown:=[1]", [1]),
    ],
)
def test_a_value_has_the_type_that_the_tool_asks_for(text: str, value: object) -> None:
    """ours: docs/cli.md."""
    (found,) = typed(text).values()
    assert found == value
    assert type(found) is type(value)


def test_without_a_schema_values_are_texts() -> None:
    assert typed_arguments(pairs_of(["a=1", "b:=1"]), None) == {"a": "1", "b": 1}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("count=five", "count must be an integer written as JSON, not 'five'"),
        ("count=5.5", "count must be an integer"),
        ("count=true", "count must be an integer"),
        ("count=", "count must be an integer"),
        ("deep=yes", "deep must be a boolean written as JSON, not 'yes'"),
        ("deep=1", "deep must be a boolean"),
        ("tags=a", "tags must be an array"),
        ("place=[]", "place must be an object"),
        ("either=x", "either must be an integer or null"),
        ("ratio=NaN", "ratio must be a number"),
        ("count=99999999999999999999", "count must be an integer"),
        ("text:=yes", "text:= is not JSON that can be sent: "),
        ('text:={"a":1,"a":2}', "text:= is not JSON that can be sent: "),
        ("text:=" + "[" * 100_000, "text:= is not JSON that can be sent: "),
        ("count", "write an argument as key=value, not 'count'"),
        ("=5", "write an argument as key=value, not '=5'"),
        (":=5", "write an argument as key=value, not ':=5'"),
        ("te\x1b[2Jxt", "write an argument as key=value, not 'te"),
        ("text=\udcff", "an argument is not UTF-8 text: 'text="),
    ],
)
def test_a_value_that_cannot_be_meant_is_told(text: str, told: str) -> None:
    with pytest.raises(click.UsageError) as caught:
        typed(text)
    assert caught.value.message.startswith(told)
    assert caught.value.message.isprintable()


def test_an_argument_is_given_once() -> None:
    with pytest.raises(click.UsageError, match="'text' is given twice: give it once"):
        pairs_of(["text=a", "text:=1"])


def test_the_arguments_of_a_prompt_are_texts() -> None:
    assert text_arguments(pairs_of(["a=1"])) == {"a": "1"}
    with pytest.raises(click.UsageError, match="arguments of a prompt are texts: write a="):
        text_arguments(pairs_of(["a:=1"]))


def test_arguments_may_come_as_one_object(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "arguments.json"
    file.write_text('{"a": [1]}', "utf-8")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b'{"a": "\xc3\xa9"}')))
    assert json_arguments('{"a": 1}') == {"a": 1}
    assert json_arguments(f"@{file}") == {"a": [1]}
    assert json_arguments("-") == {"a": "é"}


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"[]", "must hold a JSON object, such as {}"),
        (b"{", "is not JSON that can be sent: "),
        (b'{"a": "\xff"}', "is not UTF-8 text"),
        (b" " * (MAX_BYTES + 1), f"holds more than {MAX_BYTES} bytes"),
    ],
)
def test_an_object_that_cannot_be_meant_is_told(tmp_path: Path, content: bytes, told: str) -> None:
    file = tmp_path / "arguments.json"
    file.write_bytes(content)
    with pytest.raises(click.UsageError) as caught:
        json_arguments(f"@{file}")
    assert caught.value.message.startswith(f"{file} {told}")


def test_a_file_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    with pytest.raises(click.UsageError, match="none cannot be read: No such file"):
        json_arguments(f"@{tmp_path / 'none'}")

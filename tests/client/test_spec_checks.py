"""Each option of a client: what may stand there, and the sentence for what may not."""

from __future__ import annotations

from collections import UserList

import pytest

from raxol_mcp.client.spec_checks import READERS, WrongOption

SECONDS = (
    *("call_timeout", "init_timeout", "probe_timeout", "answer_timeout"),
    *("connect_timeout", "chunk_timeout", "reconnect"),
)


def wrong(option: str, value: object) -> str:
    """Return what is said about a value of an option."""
    with pytest.raises(WrongOption) as caught:
        READERS[option](option, value)
    return str(caught.value)


@pytest.mark.parametrize("option", SECONDS)
@pytest.mark.parametrize(
    "value", [0, -1, 0.0, float("nan"), float("inf"), 10**400, 2e9, True, "30", None]
)
def test_a_duration_is_seconds_above_zero(option: str, value: object) -> None:
    assert wrong(option, value).startswith(f"{option} must be seconds above 0, not ")


def test_a_duration_becomes_a_float() -> None:
    assert [READERS[option](option, 3) for option in SECONDS] == [3.0] * len(SECONDS)
    assert READERS["era_ttl"]("era_ttl", 0) == 0.0
    for value in (-1, float("nan"), False, "0"):
        assert wrong("era_ttl", value).startswith("era_ttl must be seconds, 0 or more, not ")


@pytest.mark.parametrize("option", ["pool_size", "max_message_bytes"])
@pytest.mark.parametrize("value", [0, -1, 1.0, True, "8", None])
def test_a_size_is_a_whole_number_from_one_on(option: str, value: object) -> None:
    assert READERS[option](option, 1) == 1
    assert wrong(option, value).startswith(f"{option} must be a whole number from 1 on, not ")


def test_the_queue_may_have_no_room_at_all() -> None:
    assert READERS["queue_limit"]("queue_limit", 0) == 0
    for value in (-1, 1.5, False, None):
        assert "whole number from 0 on" in wrong("queue_limit", value)


@pytest.mark.parametrize("option", ["inherit_env", "allow_private", "fail_fast"])
@pytest.mark.parametrize("value", [0, 1, "yes", None])
def test_a_switch_is_true_or_false(option: str, value: object) -> None:
    assert READERS[option](option, True) is True
    assert wrong(option, value).startswith(f"{option} must be True or False, not ")


def test_metered_may_be_left_to_the_prices() -> None:
    assert [READERS["metered"]("metered", value) for value in (None, True, False)] == [
        *(None, True, False)
    ]
    assert "metered must be True or False" in wrong("metered", 1)


@pytest.mark.parametrize(
    ("option", "allowed"),
    [
        ("concurrency", ("stateless", "pooled", "serialized")),
        ("era", ("handshake", "stateless")),
    ],
)
def test_a_choice_is_one_of_its_words(option: str, allowed: tuple[str, ...]) -> None:
    assert [READERS[option](option, value) for value in (None, *allowed)] == [None, *allowed]
    for value in ("", "Stateless", 1, ["stateless"], True):
        assert wrong(option, value).startswith(f"{option} must be one of {', '.join(allowed)}")


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (None, "name is missing"),
        ("", "name must be a text that is not empty"),
        (" \t", "name must be a text that is not empty"),
        (7, "name must be a text that is not empty"),
        ("a" * 129, "name must have at most 128 characters"),
        ("a\nb", "all of them printable"),
        ("a\u202eb", "all of them printable"),
    ],
)
def test_a_name_is_short_and_printable(value: object, said: str) -> None:
    assert READERS["name"]("name", "größe 2") == "größe 2"
    assert READERS["name"]("name", "a" * 128) == "a" * 128
    assert said in wrong("name", value)


@pytest.mark.parametrize("value", ["a\nb", "a\0b", "\x1b[1m", "a\ud800"])
def test_a_command_that_no_system_can_start_is_refused(value: str) -> None:
    assert wrong("command", value) == "command must be without control characters"


def test_bytes_that_are_no_text_stay_the_bytes_they_are() -> None:
    """PEP 383: the file system's own names may hold any byte."""
    assert READERS["command"]("command", "caf\udce9") == "caf\udce9"
    assert READERS["args"]("args", ["caf\udce9"]) == ("caf\udce9",)


@pytest.mark.parametrize("option", ["args", "drop_env"])
@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("-y", "must be a list of texts"),
        (b"-y", "must be a list of texts"),
        ({"a": "b"}, "must be a list of texts"),
        ({"a"}, "must be a list of texts"),
        (7, "must be a list of texts"),
        (["a", 7], "[1] must be a text, not int"),
        (["a\0b"], "[0] must be a text without NUL"),
        (["\ud800"], "[0] must be a text without NUL and lone surrogates"),
        (["a"] * 4097, "must have at most 4096 items"),
    ],
)
def test_a_list_of_texts_is_one(option: str, value: object, said: str) -> None:
    assert READERS[option](option, None) == ()
    assert READERS[option](option, UserList(["a", ""])) == ("a", "")
    assert wrong(option, value).startswith(f"{option}{'' if said[0] == '[' else ' '}{said}")


@pytest.mark.parametrize("option", ["env", "headers"])
@pytest.mark.parametrize("value", ["A=b", b"A=b", 7, ["A=b"], ["ab"], [("A",)], [("A", "b", "c")]])
def test_pairs_are_a_mapping_or_a_list_of_pairs(option: str, value: object) -> None:
    assert READERS[option](option, None) == ()
    assert READERS[option](option, [["A", "b"]]) == (("A", "b"),)
    assert (
        wrong(option, value) == f"{option} must be a mapping of texts to texts, or a list of pairs"
    )


def test_nothing_is_given_twice() -> None:
    """RFC 9110 §5.1: names of headers have no case; those of variables have."""
    twice = [("X-Key", "1"), ("x-key", "2")]
    assert wrong("headers", twice) == "'x-key' is in headers twice: keep the one that is meant"
    assert READERS["env"]("env", twice) == tuple(twice)
    assert wrong("env", [("A", "1"), ("A", "1")]).startswith("'A' is in env twice")


def test_pairs_are_bounded_even_when_they_never_end() -> None:
    def endless() -> object:
        while True:
            yield ("A", "b")

    assert wrong("headers", endless()) == "headers must have at most 4096 items"


@pytest.mark.parametrize("name", ["", "a b", "a:b", "a\r\nEvil", "é", 7])
def test_a_header_has_a_name_of_http(name: object) -> None:
    """RFC 9110 §5.6.2."""
    assert "not the name of a header" in wrong("headers", [(name, "x")])


@pytest.mark.parametrize("value", ["a\r\nEvil: 1", "a\n", "\0", "\x7f", "\ud800"])
def test_a_header_cannot_hold_another(value: str) -> None:
    """RFC 9110 §5.5."""
    assert "the header 'X-Key' has a line break" in wrong("headers", [("X-Key", value)])


def test_a_header_may_hold_tabs_and_other_scripts_and_nothing() -> None:
    pairs = (("a", "x\ty"), ("b", "grüße"), ("c", ""))
    assert READERS["headers"]("headers", pairs) == pairs
    assert wrong("headers", {"a": 7}) == "the header 'a' must have a text, not int"


@pytest.mark.parametrize("name", ["", "A=B", "A\0", "\ud800", 7])
def test_a_variable_has_a_name_that_systems_take(name: object) -> None:
    assert wrong("env", [(name, "x")]) == "a name in env is not the name of a variable"


def test_a_variable_has_a_text_that_systems_take() -> None:
    pairs = (("A", ""), ("ProgramFiles(x86)", "two\nlines"))
    assert READERS["env"]("env", pairs) == pairs
    assert wrong("env", {"A": None}) == "the variable 'A' must have a text, not NoneType"
    assert "without NUL" in wrong("env", {"A": "b\0"})
    assert "lone surrogates" in wrong("env", {"A": "\ud800"})


@pytest.mark.parametrize("value", ["", "a\0b", 7, b"/tmp"])
def test_a_directory_is_a_path(value: object) -> None:
    assert READERS["cwd"]("cwd", "some/where") == "some/where"
    assert wrong("cwd", value) == "cwd must be the path of a directory"


@pytest.mark.parametrize("value", [7, ["a"], {1: 2}])
def test_prices_are_by_tool(value: object) -> None:
    assert wrong("prices", value) == "prices must map names of tools to positive integers"

"""client/variables.py: what a reference is, and that nothing else is one."""

from collections.abc import Iterator, Mapping
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raxol_mcp.client.variables import (
    BadReference,
    Budget,
    Reference,
    Unset,
    expanded,
    names_in,
    parts_of,
)

ENVIRON = {"A": "1", "B_2": "two words", "_": "x", "EMPTY": "", "NEST": "${A}$(id)`id`", "A}": "no"}
NAMES = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,8}", fullmatch=True)
ALL = st.characters(exclude_categories=["Cs"])
VALUES = st.text(ALL, min_size=1, max_size=20)
DEFAULTS = st.text(ALL, max_size=12).filter(lambda text: "}" not in text and "${" not in text)
# Text in which no brace follows a dollar sign, wherever it is put.
PLAIN = st.text(ALL, max_size=12).filter(lambda text: "{" not in text and not text.endswith("$"))


def expand(text: str, environ: Mapping[str, str] = ENVIRON, characters: int = 1000) -> str:
    return expanded(text, environ, budget=Budget(characters))


class Watched(Mapping[str, str]):
    """An environment that notes which names were looked up."""

    def __init__(self, variables: Mapping[str, str]) -> None:
        self.variables = variables
        self.read: list[str] = []

    def __getitem__(self, name: str) -> str:
        self.read.append(name)
        return self.variables[name]

    def __iter__(self) -> Iterator[str]:
        raise AssertionError("nobody lists the variables")

    def __len__(self) -> int:
        raise AssertionError("nobody counts the variables")


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("${A}", "1"),
        ("${env:A}", "1"),
        ("a${A}b${B_2}c", "a1btwo wordsc"),
        ("${A}${A}", "11"),
        ("${_}", "x"),
        ("${A:-d}", "1"),
        ("${NONE:-d}", "d"),
        ("${env:NONE:-d e}", "d e"),
        ("${EMPTY:-d}", "d"),
        ("${NONE:-}", ""),
        ("${NONE:-a:-b}", "a:-b"),
        ("${NONE:-{}", "{"),
        ("${NONE:-$A}", "$A"),
        ("${A}}", "1}"),
    ],
)
def test_a_reference_becomes_its_value_or_its_default(text: str, result: str) -> None:
    """ours: the three forms in use; a default counts for empty variables too, as in a shell."""
    assert expand(text) == result


@pytest.mark.parametrize(
    "text",
    [
        *("", "plain", "$A", "$", "$$", "$$A", "a$", "{A}", "$ {A}", "%A%", "$(id)", "`id`", "~/x"),
        *("$((1+1))", "!A", "\\$A", "}$", "€{A}", "$A{}"),
    ],
)
def test_everything_else_is_text(text: str) -> None:
    """ours: no shell is imitated; BC-151."""
    assert expand(text) == text


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("$${A}", "${A}"),
        ("$$${A}", "$1"),
        ("$$$${A}", "$${A}"),
        ("$$$$${A}", "$$1"),
        ("$${", "${"),
        ("$${x-y}${A}", "${x-y}1"),
        ("$${${A}}", "${1}"),
        ("a$$b${A}", "a$$b1"),
    ],
)
def test_two_dollar_signs_in_front_of_a_brace_are_one(text: str, result: str) -> None:
    """ours: so every text can be written; elsewhere a dollar sign is itself."""
    assert expand(text) == result


def test_a_value_is_never_looked_at_again() -> None:
    """ours: what a variable holds is text, whatever it looks like."""
    assert expand("${NEST}") == "${A}$(id)`id`"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("${", "${..."),
        ("${}", "${..."),
        ("${A", "${A..."),
        ("${input:token}", "${input:token..."),
        ("${workspaceFolder.x}", "${workspaceFolder.x..."),
        ("${1A}", "${1A..."),
        ("${Ä}", r"${\xc4..."),
        ("${A-d}", "${A-d..."),
        ("${A:d}", "${A:d..."),
        ("${ A}", "${ A..."),
        ("${A\n}", r"${A\n..."),
        ("${bad-name:-sekrit}", "${bad-name..."),
        ("${" + "x-" * 50 + "}", "${" + "x-" * 20 + "..."),
        ("${A:-${B}}", "a default that refers to a variable"),
    ],
)
def test_what_only_looks_like_a_reference_is_refused(text: str, shown: str) -> None:
    """ours: sent as it is, `${input:token}` would be a password. No default is repeated."""
    with pytest.raises(BadReference) as caught:
        expand(text)
    assert str(caught.value).startswith(shown)
    assert "sekrit" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "environ", "message"),
    [
        ("${NONE}", {}, "the variable NONE is not set"),
        ("x${EMPTY}", {"EMPTY": ""}, "the variable EMPTY is empty"),
        ("${RAW}", {"RAW": "caf\udce9"}, "the variable RAW does not hold UTF-8 text"),
        ("${BIG}", {"BIG": "s" * 1001}, "the variable BIG makes this server's entry too large"),
        ("${X}${X}", {"X": "s" * 501}, "the variable X makes this server's entry too large"),
    ],
)
def test_a_variable_that_cannot_be_used_is_named_without_its_value(
    text: str, environ: dict[str, str], message: str
) -> None:
    """ours: a reason may be shown to anybody."""
    with pytest.raises(Unset) as caught:
        expand(text, environ)
    assert str(caught.value) == message


def test_the_budget_is_one_for_all_texts_of_a_server() -> None:
    """K12: many references to one variable must not fill the memory."""
    budget = Budget(10)
    environ = {"X": "12345"}
    assert expanded("${X}${X}", environ, budget=budget) == "1234512345"
    with pytest.raises(Unset, match="X"):
        expanded("${X}", environ, budget=budget)


def test_only_the_variables_that_are_named_are_read() -> None:
    """ours: nothing else of the environment is looked at."""
    watched = Watched({"A": "1", "SECRET": "s"})
    assert expand("${A} $SECRET $${SECRET} ${NONE:-x}", watched) == "1 $SECRET ${SECRET} x"
    assert watched.read == ["A", "NONE"]


def test_a_text_is_taken_apart_without_reading_anything() -> None:
    assert parts_of("a${A}$$${env:B:-c}") == ["a", Reference("A"), "$", Reference("B", "c")]
    assert parts_of("") == []
    assert names_in("${B}${A:-x}$${C}${B}") == ["B", "A", "B"]


@given(
    st.lists(
        st.one_of(
            PLAIN.map(lambda text: (text, text)),
            st.tuples(NAMES, VALUES).map(lambda pair: (pair, pair[1])),
        ),
        max_size=8,
    )
)
def test_texts_and_values_come_back_in_order(
    pieces: list[tuple[str | tuple[str, str], str]],
) -> None:
    """ours: each reference is replaced by its value, and nothing else changes."""
    environ = {piece[0]: piece[1] for piece, _ in pieces if isinstance(piece, tuple)}
    text = "".join(
        piece if isinstance(piece, str) else "${" + piece[0] + "}" for piece, _ in pieces
    )
    result = "".join(piece if isinstance(piece, str) else environ[piece[0]] for piece, _ in pieces)
    assert expand(text, environ) == result


@given(NAMES, DEFAULTS)
def test_a_default_is_any_text_up_to_the_brace(name: str, default: str) -> None:
    assert parts_of(f"${{env:{name}:-{default}}}") == [Reference(name, default)]
    assert expand(f"${{{name}:-{default}}}", {}) == default


@given(st.text(ALL, max_size=30))
def test_every_text_can_be_written(text: str) -> None:
    """ours: double the dollar signs of a run in front of a brace, and it is text again."""
    written = ""
    for position, character in enumerate(text):
        run = text[position:].lstrip("$")
        written += "$$" if character == "$" and run.startswith("{") else character
    assert expand(written, {}) == text


@given(st.text(st.sampled_from("${}:-envA\n"), max_size=25))
def test_no_text_does_more_than_be_refused(text: str) -> None:
    """ours: any text either comes apart, with no empty text among its parts, or is refused."""
    with suppress(BadReference):
        assert "" not in parts_of(text)

"""Complaints about values, in the words of the caller."""

import pytest

from raxol_mcp.schemas.problems import quoted, reworded, sentence


def test_one_sentence_joins_every_problem() -> None:
    """MCP 2025-11-25 server/tools §Error Handling: input errors are for the model to read."""
    problems = ["'a' is required", "'b' is unknown"]
    assert sentence(problems) == "Invalid arguments: 'a' is required; 'b' is unknown."
    assert sentence([(("a", 0), "is odd")]) == "Invalid arguments: 'a[0]' is odd."
    assert sentence(["'x' is odd"], noun="answer") == "Invalid answer: 'x' is odd."


def test_a_flood_of_problems_is_counted_and_not_listed() -> None:
    text = sentence([f"'{number}' is unknown" for number in range(100_000)])
    assert text.count("is unknown") == 20
    assert text.endswith("; and 99980 more.")


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (["a"], "'a'"),
        (["a", "b", 0, "c"], "'a.b[0].c'"),
        ([0, "x"], "'[0].x'"),
        (["x" * 100], "'" + "x" * 63 + "…'"),
        (["a\nInjected: line"], r"'a\nInjected: line'"),
        (["\u202eabc"], r"'\u202eabc'"),
        (["größe"], "'größe'"),
    ],
)
def test_a_path_is_short_and_on_one_line(path: list[str | int], expected: str) -> None:
    assert quoted(path) == expected


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("Expected `int`, got `str`", "'a' must be integer, not string"),
        ("Expected `int | null`, got `bool`", "'a' must be integer or null, not boolean"),
        ("Expected `str`, got `object`", "'a' must be string, not object"),
        ("Expected `int` >= 6", "'a' must be integer >= 6"),
        ("Expected `str` of length <= 2", "'a' must be string of length <= 2"),
        ("Expected `str`, got `int` - at `$.b[0]`", "'a.b[0]' must be string, not integer"),
        ("Expected `int`, got `str` - at `$[...]`", "'a[...]' must be integer, not string"),
        (
            "Expected `int`, got `str` - at `key` in `$.b`",
            "a name in 'a.b' must be integer, not string",
        ),
        ("Object missing required field `b`", "'a.b' is required"),
        ("Object missing required field `b` - at `$[3]`", "'a[3].b' is required"),
        ("Object contains unknown field `b`", "'a.b' is unknown"),
        ("Invalid RFC3339 encoded date", "'a' is no valid RFC3339 encoded date"),
        ("Invalid base64 encoded string", "'a' is no valid base64 encoded string"),
        ("Invalid enum value 'secret'", "'a' is not one of the allowed values"),
        ("Invalid value 'secret' - at `$.type`", "'a.type' is not one of the allowed values"),
        ("two\n  lines", "'a' is not valid (two lines)"),
    ],
)
def test_complaints_speak_of_json_and_never_repeat_a_value(message: str, expected: str) -> None:
    assert reworded(message, "a") == expected


def test_allowed_values_are_named_when_they_are_known() -> None:
    assert reworded("Invalid enum value 'x'", "a", allowed=["b", 1, None]) == (
        "'a' must be one of 'b', 1, null"
    )
    # They are those of the argument itself, not of something inside of it.
    assert reworded("Invalid enum value 'x' - at `$[0]`", "a", allowed=["b"]) == (
        "'a[0]' is not one of the allowed values"
    )
    many = reworded("Invalid enum value 'x'", "a", allowed=[str(number) for number in range(500)])
    assert many.endswith("'19', …")


def test_a_complaint_about_the_whole_has_no_name() -> None:
    assert reworded("Expected `object`, got `array`", "") == ("the value must be object, not array")
    assert reworded("Expected `int`, got `str` - at `$.b`", "") == "'b' must be integer, not string"
    assert reworded("Object missing required field `b`", "") == "'b' is required"


def test_a_long_complaint_of_user_code_is_cut() -> None:
    assert len(reworded("y" * 10_000, "a")) < 400

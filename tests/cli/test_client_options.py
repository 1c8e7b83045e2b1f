"""The options that name a server, and how to deal with it."""

from typing import Any

import click
import pytest
from click.testing import CliRunner

from raxol_mcp.cli.client_options import (
    ClientCommand,
    Manner,
    Target,
    manner_options,
    target_options,
)


def parsed(*arguments: str) -> tuple[Target, Manner, dict[str, Any]]:
    """Parse a command line; raises what click raises."""
    found: list[tuple[Target, Manner, dict[str, Any]]] = []

    @click.command(cls=ClientCommand)
    @click.argument("words", nargs=-1)
    @target_options
    @manner_options(asks=True)
    def command(target: Target, manner: Manner, **rest: Any) -> None:
        found.append((target, manner, rest))

    command.main(arguments, standalone_mode=False)
    return found[0]


def refused(*arguments: str) -> str:
    """Return why a command line is refused."""

    def use() -> None:
        target, manner, _ = parsed(*arguments)
        target.header_pairs({"TOKEN": "abc", "EMPTY": ""})
        manner.answered()

    with pytest.raises(click.UsageError) as caught:
        use()
    return caught.value.format_message()


@pytest.mark.parametrize(
    ("arguments", "argv"),
    [
        (["--command", "npx -y 'a b' server"], ("npx", "-y", "a b", "server")),
        (["--command", "a $HOME `id`; $(id) *"], ("a", "$HOME", "`id`;", "$(id)", "*")),
        (["--", "npx", "-y", "--json", "--", "a b", ""], ("npx", "-y", "--json", "--", "a b", "")),
    ],
)
def test_a_command_is_words_and_no_shell_reads_them(
    arguments: list[str], argv: tuple[str, ...]
) -> None:
    """BC-151."""
    target, _, rest = parsed("one", "two", *arguments)
    assert target == Target(argv=argv)
    assert rest == {"words": ("one", "two")}


def test_the_program_is_in_the_usage() -> None:
    @click.command(cls=ClientCommand)
    def command() -> None:
        """Do it."""

    assert "[-- PROGRAM ...]" in CliRunner().invoke(command, ["--help"]).stdout


def test_every_option_is_taken() -> None:
    target, manner, _ = parsed(
        *("--url", "https://a/", "--header", "A: b", "--header", "C:d:e", "--header-env"),
        *(
            "Authorization=TOKEN",
            "--allow-private",
            "--era",
            "handshake",
            "--json",
            "--timeout",
            "2.5",
            "--quiet",
        ),
        *("--answer", "a=1", "--answer", "b==", "--answer", "a="),
    )
    assert target.url == "https://a/"
    assert (target.allow_private, target.era) == (True, "handshake")
    assert target.header_pairs({"TOKEN": "abc"}) == [
        ("A", "b"),
        ("C", "d:e"),
        ("Authorization", "abc"),
    ]
    assert (manner.as_json, manner.timeout, manner.quiet) == (True, 2.5, True)
    assert manner.answered() == {"a": ["1", ""], "b": ["="]}
    target, manner, _ = parsed("--server", "a", "--config", "b", "-v")
    assert target == Target(server="a", config="b")
    assert manner == Manner(verbose=True)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--command", "a", "--", "b"], "--command and -- exclude each other"),
        (["--command", "a", "--url", "b"], "a command and --url exclude each other"),
        (
            ["--url", "b", "--config", "c"],
            "--url and --server or --config exclude each other: name one server",
        ),
        (["--", "a", "--server", "b"], None),
        (["--server", "b", "--", "a"], "a command and --server or --config exclude each other"),
        (["--command", "'"], "--command cannot be split into words: No closing quotation"),
        (["--command", ""], "the command of the server is empty: name a program"),
        (["--command", "''"], "the command of the server is empty: name a program"),
        (["--"], "the command of the server is empty: name a program"),
        (["--header", "a: b"], "--header, --header-env and --allow-private belong to --url"),
        (["--allow-private", "--command", "a"], "--header, --header-env and --allow-private"),
        (["--era", "stateless", "--server", "a"], "--era belongs to a command or --url"),
        (["--era", "old", "--url", "a"], "Invalid value for '--era'"),
        (["--url", "a", "--header", "secret"], 'write a header as --header "NAME: VALUE"'),
        (["--url", "a", "--header", ": b"], 'write a header as --header "NAME: VALUE"'),
        (["--url", "a", "--header-env", "b"], "write a header from a variable as --header-env "),
        (["--url", "a", "--header-env", "b="], "write a header from a variable as --header-env "),
        (["--url", "a", "--header-env", "b=NONE"], "--header-env names the variable 'NONE'"),
        (["--url", "a", "--header-env", "b=EMPTY"], "--header-env names the variable 'EMPTY'"),
        (["--timeout", "0"], "Invalid value for '--timeout'"),
        (["-q", "-v"], "--quiet and --verbose exclude each other: name one"),
        (["--answer", "yes"], "write an answer as field=value, not 'yes'"),
        (["--answer", "=yes"], "write an answer as field=value, not '=yes'"),
    ],
)
def test_options_that_cannot_be_meant_are_refused(arguments: list[str], told: str | None) -> None:
    if told is None:  # what follows the two dashes belongs to the program
        assert parsed(*arguments)[0].argv == ("a", "--server", "b")
        return
    assert refused(*arguments).startswith(told)

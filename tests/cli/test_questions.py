"""What servers ask, at a real pseudo-terminal: what is shown, and what counts as a yes."""

import asyncio
import io
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from raxol_mcp.cli.questions import Answers, Questions
from raxol_mcp.cli.screen import Screen
from raxol_mcp.cli.terminal import Terminal
from raxol_mcp.cli.web_addresses import Address
from raxol_mcp.client.answers import Accept, Cancel, Decline, ElicitRequest, Reply
from raxol_mcp.client.forms import form_of
from tests.cli.pseudo_terminal import TIMEOUT, PseudoTerminal, pseudo_terminal

APPROVE = {"approve": {"type": "boolean"}}
PROFILE = {
    "name": {"type": "string", "minLength": 2, "title": "Your name"},
    "age": {"type": "integer", "minimum": 18},
    "colour": {"type": "string", "enum": ["red", "green"], "default": "green"},
    "notes": {"type": "string"},
}

Person = Callable[[PseudoTerminal], Awaitable[None]]


def form(
    properties: dict[str, Any], *, required: tuple[str, ...] = (), message: str = "Sure?"
) -> ElicitRequest:
    """Make a question that the client has let through."""
    schema = {"type": "object", "properties": properties, "required": list(required)}
    return ElicitRequest("files", "form", message, form_of(schema))


def visit(url: str) -> ElicitRequest:
    """Make a question about an address."""
    return ElicitRequest("files", "url", "Log in, please.", url=url)


class Browser:
    """Takes note of what it is to open."""

    def __init__(self, *, works: bool = True) -> None:
        self.opened: list[str] = []
        self._works = works

    async def __call__(self, address: Address) -> bool:
        self.opened.append(address.url)
        return self._works


def at_a_terminal(
    request: ElicitRequest,
    person: Person,
    *,
    answers: dict[str, list[str]] | None = None,
    browser: Browser | None = None,
    columns: int = 60,
) -> tuple[Reply, str]:
    """Ask a person; return the reply, and what was shown that the person did not wait for."""

    async def run(terminal: PseudoTerminal) -> Reply:
        screen = Screen(terminal.stream, is_terminal=True)
        questions = Questions(
            screen,
            Terminal(screen, terminal.fd),
            answers=Answers(answers or {}),
            about="call write",
            opener=browser or Browser(),
        )
        async with asyncio.timeout(TIMEOUT):
            reply = asyncio.ensure_future(questions(request))
            await person(terminal)
            return await reply

    with pseudo_terminal(columns) as terminal:
        return asyncio.run(run(terminal)), terminal.all()


def dialogue(*lines: tuple[str, str]) -> Person:
    """Make a person who waits for a text and then types one, again and again."""

    async def person(terminal: PseudoTerminal) -> None:
        for seen, typed in lines:
            await terminal.sees(seen)
            terminal.types(typed)

    return person


@pytest.fixture(autouse=True)
def plain(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave out styles, so that texts can be compared."""
    monkeypatch.setenv("NO_COLOR", "1")


# -- one yes or no ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("typed", "reply"),
    [
        ("y\n", Accept({"approve": True})),
        ("YES\n", Accept({"approve": True})),
        ("false\n", Accept({"approve": False})),
        ("\n", Decline()),
        ("n\n", Decline()),
        ("what?\ny\n", Accept({"approve": True})),
        ("1\n2\n3\n", Decline()),
        ("\x04", Cancel()),
    ],
)
def test_the_default_is_no(typed: str, reply: Reply) -> None:
    """ours: docs/cli.md. MCP 2025-11-25 client/elicitation: allow decline and cancel."""
    assert at_a_terminal(form(APPROVE), dialogue(("[y/N] ", typed)))[0] == reply


def test_a_default_of_the_server_is_no_consent() -> None:
    schema = {"approve": {"type": "boolean", "default": True}}
    assert at_a_terminal(form(schema), dialogue(("[y/N] ", "\n")))[0] == Decline()


def test_a_form_without_fields_wants_a_yes_as_well() -> None:
    assert at_a_terminal(form({}), dialogue(("Agree? [y/N] ", "\n")))[0] == Decline()
    assert at_a_terminal(form({}), dialogue(("Agree? [y/N] ", "y\n")))[0] == Accept({})


def test_the_person_sees_who_asks_about_what_and_every_character() -> None:
    """MCP 2025-11-25 client/elicitation: show which server asks. K21, K28: hidden characters."""
    message = "Delete?\npath: a\u202etxt.exe\x1b[2K\u200b\r\n\tdone"

    async def person(terminal: PseudoTerminal) -> None:
        await terminal.sees("approve? [y/N] ")
        terminal.types("n\n")

    async def looks(terminal: PseudoTerminal) -> None:
        await terminal.sees("? files asks (call write):\n")
        await terminal.sees("  | Delete?\n")
        await terminal.sees("  | path: a\\u202etxt.exe\\x1b[2K\\u200b\n")
        await terminal.sees("  | \\tdone\n")
        await person(terminal)

    assert at_a_terminal(form(APPROVE, message=message), looks)[1] == "  declined\n"


def test_a_server_cannot_write_a_line_that_looks_like_ours() -> None:
    """K21. Neither by a line break nor by leaving it to the terminal to break the line."""
    message = "Read a file?\n  approve? [y/N] y\n" + " " * 36 + "? trusted asks (call read): sure?"

    marked = shown_message(message, columns=40)
    assert all(line.startswith("  | ") for line in marked)
    assert max(map(len, marked)) <= 40
    assert "".join(line.removeprefix("  | ") for line in marked) == message.replace("\n", "")


def shown_message(message: str, columns: int) -> list[str]:
    """Return the lines a message is shown in."""
    stream = io.StringIO()
    screen = Screen(stream, is_terminal=False, width=columns)
    questions = Questions(screen, None, answers=Answers({}))
    assert asyncio.run(questions(form({}, message=message))) == Decline()
    return stream.getvalue().splitlines()[1:-1]


def test_a_long_label_is_not_left_to_the_terminal_to_break() -> None:
    schema = {"approve": {"type": "boolean", "title": "x" * 300}}

    async def looks(terminal: PseudoTerminal) -> None:
        await terminal.sees("[y/N] ")
        assert max(map(len, terminal.transcript.splitlines())) <= 60
        terminal.types("n\n")

    assert at_a_terminal(form(schema), looks)[0] == Decline()


@pytest.mark.parametrize(
    ("message", "told"),
    [("x" * 8001, "(8,001 characters)"), ("\n" * 100, "(101 lines)"), ("x " * 3500, "lines)")],
)
def test_what_is_too_long_to_be_read_is_declined_unseen(message: str, told: str) -> None:
    """What matters could be in the part that nobody reads."""

    async def sees(terminal: PseudoTerminal) -> None:
        await terminal.sees("raxol-mcp: declined a question of files: it is too long to be read")
        await terminal.sees(told)

    assert at_a_terminal(form(APPROVE, message=message), sees)[0] == Decline()


# -- forms ------------------------------------------------------------------------------------


def test_a_form_is_filled_in_looked_at_again_and_sent() -> None:
    """MCP 2025-11-25 client/elicitation: review before sending; defaults are shown (SEP-1034)."""

    async def person(terminal: PseudoTerminal) -> None:
        await terminal.sees("  Your name (text, at least 2 characters)\n  Your name: ")
        terminal.types("A\n")
        await terminal.sees("! must have at least 2 characters\n  Your name: ")
        terminal.types("Ada\n")
        await terminal.sees("  age (integer, at least 18)\n  age: ")
        terminal.types("\n")
        await terminal.sees("! this is needed")
        await terminal.sees("age: ")
        terminal.types("40\n")
        await terminal.sees("    1. red\n    2. green\n  empty: green\n  colour: ")
        terminal.types("1\n")
        await terminal.sees("notes (text, may be left empty)\n  notes: ")
        terminal.types("\n")
        await terminal.sees("  | Your name = Ada\n  | age = 40\n  | colour = red\n  Send this")
        await terminal.sees("[y/N] ")
        terminal.types("y\n")

    reply, _ = at_a_terminal(form(PROFILE, required=("name", "age")), person)
    assert reply == Accept({"name": "Ada", "age": 40, "colour": "red"})


@pytest.mark.parametrize(
    ("last", "reply"), [("n\n", Decline()), ("\n", Decline()), ("\x04", Cancel())]
)
def test_a_form_that_was_filled_in_is_not_sent_without_a_yes(last: str, reply: Reply) -> None:
    person = dialogue(("colour: ", "\n"), ("notes: ", "hi\n"), ("Send this to the server?", last))
    properties = {name: PROFILE[name] for name in ("colour", "notes")}
    assert at_a_terminal(form(properties), person)[0] == reply


def test_an_empty_line_takes_the_default() -> None:
    person = dialogue(("colour: ", "\n"), ("notes: ", "\n"), ("| colour = green\n", "y\n"))
    properties = {name: PROFILE[name] for name in ("colour", "notes")}
    assert at_a_terminal(form(properties), person)[0] == Accept({"colour": "green"})


def test_nobody_is_asked_for_ever() -> None:
    person = dialogue(("age: ", "x\n"), ("age: ", "17\n"), ("age: ", "none\n"))
    properties = {name: PROFILE[name] for name in ("age", "notes")}
    reply, shown = at_a_terminal(form(properties), person)
    assert reply == Decline()
    assert shown.endswith("declined: nothing that was typed fits\n")


def test_who_is_asked_for_a_secret_is_warned() -> None:
    """MCP 2025-11-25 client/elicitation: servers must not ask for secrets in a form."""
    person = dialogue(("! a form must not ask for secrets", ""), ("API key: ", "\x04"))
    properties = {"k": {"type": "string", "title": "API key"}}
    assert at_a_terminal(form(properties), person)[0] == Cancel()


def test_a_question_that_is_withdrawn_is_gone_from_the_terminal() -> None:
    """MCP basic/utilities/cancellation: the server no longer waits."""
    with pseudo_terminal() as terminal:

        async def run() -> None:
            screen = Screen(terminal.stream, is_terminal=True)
            questions = Questions(screen, Terminal(screen, terminal.fd), answers=Answers({}))
            async with asyncio.timeout(TIMEOUT):
                first = asyncio.ensure_future(questions(form(APPROVE)))
                await terminal.sees("[y/N] ")
                first.cancel()
                await terminal.sees("raxol-mcp: files no longer waits for an answer\n")
                second = asyncio.ensure_future(questions(form(APPROVE)))
                await terminal.sees("[y/N] ")
                terminal.types("y\n")
                assert await second == Accept({"approve": True})
                assert first.cancelled()

        asyncio.run(run())


# -- without a terminal -----------------------------------------------------------------------


def without_a_terminal(request: ElicitRequest, answers: Answers) -> tuple[Reply, str]:
    """Ask where nobody is."""
    stream = io.StringIO()
    screen = Screen(stream, is_terminal=False, width=60)
    browser = Browser()
    questions = Questions(screen, None, answers=answers, opener=browser)
    reply = asyncio.run(questions(request))
    assert browser.opened == []
    return reply, stream.getvalue()


@pytest.mark.parametrize("request_", [form(APPROVE), form({}), visit("https://a.example/")])
def test_silence_is_not_consent(request_: ElicitRequest) -> None:
    reply, shown = without_a_terminal(request_, Answers({}))
    assert reply == Decline()
    assert shown.startswith("? files asks:\n  | ")
    assert ("  approve (yes or no" in shown) is (request_.schema == form(APPROVE).schema)
    assert shown.endswith("  declined: there is no terminal to answer at\n")


def test_an_answer_given_beforehand_is_spent_once() -> None:
    """ours: docs/cli.md."""
    answers = Answers({"approve": ["true"], "name": ["Ada"]})
    reply, shown = without_a_terminal(form(APPROVE, required=("approve",)), answers)
    assert reply == Accept({"approve": True})
    assert shown.endswith("  | approve = yes\n  sent, as --answer says\n")
    reply, _ = without_a_terminal(form(APPROVE, required=("approve",)), answers)
    assert reply == Decline()
    reply, _ = without_a_terminal(form({"name": {"type": "string"}}), answers)
    assert reply == Accept({"name": "Ada"})


@pytest.mark.parametrize(
    ("properties", "required"),
    [
        ({**APPROVE, "name": {"type": "string"}}, ("name",)),
        ({**APPROVE, "wipe": {"type": "boolean", "default": True}}, ()),
        ({"other": {"type": "boolean"}}, ()),
        ({}, ()),
    ],
)
def test_an_answer_agrees_to_nothing_that_it_does_not_name(
    properties: dict[str, Any], required: tuple[str, ...]
) -> None:
    """A default of the server's is not what was agreed to."""
    answers = Answers({"approve": ["true"]})
    assert without_a_terminal(form(properties, required=required), answers)[0] == Decline()
    assert without_a_terminal(form(APPROVE), answers)[0] == Accept({"approve": True}), "not spent"


def test_an_answer_that_does_not_fit_declines_and_says_so() -> None:
    reply, shown = without_a_terminal(form(APPROVE), Answers({"approve": ["maybe"]}))
    assert reply == Decline()
    assert shown == ("raxol-mcp: declined a question of files: --answer approve: type yes or no\n")


def test_an_answer_is_used_before_a_person_is_asked() -> None:
    async def nobody(terminal: PseudoTerminal) -> None:
        await terminal.sees("sent, as --answer says")

    reply, _ = at_a_terminal(form(APPROVE), nobody, answers={"approve": ["yes"]})
    assert reply == Accept({"approve": True})


# -- addresses --------------------------------------------------------------------------------

URL = "https://login.example.com/start?state=abc"


def test_an_address_is_shown_whole_and_opened_after_a_yes() -> None:
    """MCP 2025-11-25 client/elicitation §Security: the whole URL, and its domain."""
    browser = Browser()

    async def person(terminal: PseudoTerminal) -> None:
        await terminal.sees("  | Log in, please.\n")
        await terminal.sees("  It wants to open an address of\n    login.example.com\n")
        await terminal.sees(f"  which is\n    {URL}\n")
        assert browser.opened == []
        await terminal.sees("Open it in your browser? [y/N] ")
        terminal.types("y\n")

    assert at_a_terminal(visit(URL), person, browser=browser)[0] == Accept()
    assert browser.opened == [URL]


@pytest.mark.parametrize(
    ("typed", "reply"), [("\n", Decline()), ("n\n", Decline()), ("\x04", Cancel())]
)
def test_an_address_is_not_opened_without_a_yes(typed: str, reply: Reply) -> None:
    browser = Browser()
    answer, _ = at_a_terminal(visit(URL), dialogue(("[y/N] ", typed)), browser=browser)
    assert (answer, browser.opened) == (reply, [])


def test_the_domain_stands_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR")
    at_a_terminal(visit(URL), dialogue(("\x1b[1m    login.example.com\x1b[0m\n", "n\n")))


def test_a_name_in_punycode_is_warned_of() -> None:
    """MCP 2025-11-25 client/elicitation §Security."""
    url = "https://xn--pple-43d.com/"
    at_a_terminal(visit(url), dialogue(("! this name is in punycode", ""), ("[y/N] ", "n\n")))


def test_where_no_browser_is_the_person_opens_it() -> None:
    person = dialogue(("[y/N] ", "y\n"), ("open the address above yourself", ""))
    assert at_a_terminal(visit(URL), person, browser=Browser(works=False))[0] == Accept()


def test_what_is_no_web_address_is_declined_and_not_shown() -> None:
    """BC-121."""
    stream = io.StringIO()
    questions = Questions(Screen(stream, is_terminal=False), None, answers=Answers({}))
    assert asyncio.run(questions(visit("javascript:alert(1)"))) == Decline()
    assert stream.getvalue() == (
        "raxol-mcp: declined a question of files: it wants to open what is no web address\n"
    )

"""What a server asks a person, put to whoever sits at the terminal. The default is no.

The person sees which server asks and every character of what it says, each line of it behind a
mark, so that no server can write a line that looks like ours. Nothing is agreed to by silence: not
by an empty line, not by what was typed before the question, not by a terminal that is missing.
What a script agrees to beforehand, with `--answer`, is spent once and fits one field.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from raxol_mcp.cli.form_fields import (
    MISSING,
    Field,
    Kind,
    Misfit,
    UnreadableForm,
    fields_of,
    parsed,
)
from raxol_mcp.cli.screen import Screen
from raxol_mcp.cli.screen_text import shortened, wrapped
from raxol_mcp.cli.terminal import TRIES, GaveUp, Terminal
from raxol_mcp.cli.web_addresses import Address, BadAddress, address_of, open_in_browser
from raxol_mcp.client.answers import Accept, Cancel, Decline, ElicitRequest, Reply
from raxol_mcp.wire.texts import printable

__all__ = ["Answers", "Questions"]

# What a person can be expected to read before they decide. A longer question is not shown in
# part: what matters could be in the rest.
_MAX_CHARACTERS: Final = 8_000
_MAX_LINES: Final = 100
# A label has been shown whole before it stands in front of what is typed.
_MAX_PROMPT: Final = 40

_MARK: Final = "  | "
_SECRET: Final = re.compile(
    r"pass(?:word|wort|phrase|code)|secret|token|api[ _-]?key|private[ _-]?key|credential|\bpin\b",
    re.IGNORECASE,
)


class _TooManyTries(Exception):
    """Nothing that was typed fits."""


class Answers:
    """The answers given beforehand, `{field: texts in order}`. Each is used once."""

    def __init__(self, given: Mapping[str, list[str]]) -> None:
        self._left = {name: list(texts) for name, texts in given.items()}

    def spend(self, fields: tuple[Field, ...]) -> dict[str, object] | None:
        """Fill in a form, and use the answers up; None, and nothing used, when they do not do.

        They do when there is one for a field at least, and for every field that is required or
        has a default: a default of the server's is not what was agreed to. Raises `Misfit`.
        """
        taken = {field.name: self._left[field.name][0] for field in fields if self._has(field)}
        needed = [field for field in fields if field.required or field.default is not MISSING]
        if not taken or any(field.name not in taken for field in needed):
            return None
        content: dict[str, object] = {}
        for field in fields:
            if field.name in taken:
                try:
                    content[field.name] = parsed(field, taken[field.name])
                except Misfit as error:
                    raise Misfit(f"--answer {printable(field.name)}: {error}") from None
        for name in taken:
            del self._left[name][0]
        return content

    def _has(self, field: Field) -> bool:
        return bool(self._left.get(field.name))


class Questions:
    """Answers what servers ask, from a terminal, or without one by what was given beforehand.

    `about` says what this command is doing, for the person; it is escaped here.
    """

    def __init__(
        self,
        screen: Screen,
        terminal: Terminal | None,
        *,
        answers: Answers,
        about: str = "",
        opener: Callable[[Address], Awaitable[bool]] = open_in_browser,
    ) -> None:
        self._screen = screen
        self._terminal = terminal
        self._answers = answers
        self._about = printable(about)
        self._opener = opener

    async def __call__(self, request: ElicitRequest) -> Reply:
        """Answer one question. Raises nothing but CancelledError: the question was withdrawn."""
        server = printable(request.server)
        try:
            if request.mode == "url":
                return await self._visit(request, server)
            return await self._form(request, server)
        except (UnreadableForm, BadAddress, Misfit) as error:
            self._screen.note(f"raxol-mcp: declined a question of {server}: {error}")
            return Decline()
        except asyncio.CancelledError:
            self._screen.note(f"raxol-mcp: {server} no longer waits for an answer")
            raise

    # -- forms --------------------------------------------------------------------------------

    async def _form(self, request: ElicitRequest, server: str) -> Reply:
        fields = fields_of(request.schema or {})
        shown = self._shown(request.message, server)
        content = self._answers.spend(fields)
        if content is not None:
            for line in [*shown, *self._summary(fields, content), "  sent, as --answer says"]:
                self._screen.note(line)
            return Accept(content)
        if self._terminal is None:
            return self._nobody([*shown, *(line for one in fields for line in self._lines(one))])
        return await self._at(
            self._terminal, shown, lambda terminal: self._filled(terminal, fields)
        )

    async def _filled(self, terminal: Terminal, fields: tuple[Field, ...]) -> Reply:
        """Let the person fill a form in."""
        for field in fields:
            if _SECRET.search(f"{field.name} {field.label}"):
                self._warn("a form must not ask for secrets: do not type one here")
                break
        if not fields:
            return Accept({}) if await terminal.yes("  Agree?") else Decline()
        if len(fields) == 1 and fields[0].kind is Kind.BOOLEAN:
            return await self._decided(terminal, fields[0])
        content: dict[str, object] = {}
        for field in fields:
            value = await self._value(terminal, field)
            if value is not MISSING:
                content[field.name] = value
        self._say(self._summary(fields, content))
        return Accept(content) if await terminal.yes("  Send this to the server?") else Decline()

    async def _decided(self, terminal: Terminal, field: Field) -> Reply:
        """Ask a form that is one yes or no as such: there is nothing else to look at again.

        "false" sends a no as the answer; whatever else is no yes declines to answer.
        """
        self._say(self._lines(field))
        label = shortened(field.label, _MAX_PROMPT)
        for _ in range(TRIES):
            typed = (await terminal.line(f"  {label}? [y/N] ")).strip().lower()
            if typed in ("", "n", "no"):
                return Decline()
            try:
                return Accept({field.name: parsed(field, typed)})
            except Misfit as error:
                self._warn(str(error))
        raise _TooManyTries

    async def _value(self, terminal: Terminal, field: Field) -> object:
        self._say(self._lines(field))
        prompt = f"  {shortened(field.label, _MAX_PROMPT)}: "
        if field.default is not MISSING:
            self._say(self._indented(f"empty: {_shown_value(field, field.default)}", "  "))
        for _ in range(TRIES):
            typed = await terminal.line(prompt)
            if not typed.strip():
                if field.default is not MISSING:
                    return field.default
                if not field.required:
                    return MISSING
                self._warn("this is needed: to send nothing at all, press Ctrl-C")
                continue
            try:
                return parsed(field, typed)
            except Misfit as error:
                self._warn(str(error))
        raise _TooManyTries

    def _lines(self, field: Field) -> list[str]:
        said = f"{field.label} ({field.hint})"
        if field.description:
            said = f"{said}: {field.description}"
        lines = self._indented(said, "  ")
        for number, (_, label) in enumerate(field.choices, 1):
            lines += self._indented(
                f"{number}. {label}" if field.numbered else f"- {label}", "    "
            )
        return lines

    # -- addresses ----------------------------------------------------------------------------

    async def _visit(self, request: ElicitRequest, server: str) -> Reply:
        """Ask whether an address may be opened. It is not opened, nor contacted, before a yes."""
        address = address_of(request.url or "")
        shown = self._shown(request.message, server)
        shown.append("  It wants to open an address of")
        shown += [
            self._screen.styled(line, "bold") for line in self._indented(address.host, "    ")
        ]
        shown += ["  which is", *self._indented(address.url, "    ")]
        shown += [self._screen.styled(f"  ! {line}", "warning") for line in address.warnings]
        if self._terminal is None:
            return self._nobody(shown)
        return await self._at(
            self._terminal, shown, lambda terminal: self._opened(terminal, address)
        )

    async def _opened(self, terminal: Terminal, address: Address) -> Reply:
        if not await terminal.yes("  Open it in your browser?"):
            return Decline()
        if not await self._opener(address):
            self._warn("no browser could be started: open the address above yourself")
        return Accept()

    # -- every question -----------------------------------------------------------------------

    async def _at(
        self,
        terminal: Terminal,
        shown: list[str],
        answered: Callable[[Terminal], Awaitable[Reply]],
    ) -> Reply:
        async with terminal.question():
            self._say(shown)
            try:
                reply = await answered(terminal)
            except GaveUp:
                self._screen.ask("  cancelled\n")
                return Cancel()
            except _TooManyTries:
                self._screen.ask("  declined: nothing that was typed fits\n")
                return Decline()
            if isinstance(reply, Decline):
                self._screen.ask("  declined\n")
            return reply

    def _shown(self, message: str, server: str) -> list[str]:
        """Write the question so that all of it is seen. Raises `UnreadableForm`."""
        if len(message) > _MAX_CHARACTERS:
            raise UnreadableForm(f"it is too long to be read ({len(message):,} characters)")
        marked: list[str] = []
        for line in message.replace("\r\n", "\n").split("\n"):
            marked += self._indented(printable(line), _MARK)
        if len(marked) > _MAX_LINES:
            raise UnreadableForm(f"it is too long to be read ({len(marked)} lines)")
        about = f" ({self._about})" if self._about else ""
        first = wrapped(f"? {server} asks{about}:", self._screen.width)
        return [*(self._screen.styled(line, "bold") for line in first), *marked]

    def _summary(self, fields: tuple[Field, ...], content: Mapping[str, object]) -> list[str]:
        lines: list[str] = []
        for field in fields:
            if field.name in content:
                said = f"{field.label} = {_shown_value(field, content[field.name])}"
                lines += self._indented(said, _MARK)
        return lines

    def _indented(self, text: str, indent: str) -> list[str]:
        return [f"{indent}{line}" for line in wrapped(text, self._screen.width - len(indent))]

    def _say(self, lines: list[str]) -> None:
        for line in lines:
            self._screen.ask(f"{line}\n")

    def _nobody(self, shown: list[str]) -> Reply:
        for line in [*shown, "  declined: there is no terminal to answer at"]:
            self._screen.note(line)
        return Decline()

    def _warn(self, sentence: str) -> None:
        self._say([self._screen.styled(f"  ! {sentence}", "warning")])


def _shown_value(field: Field, value: object) -> str:
    """Write a value of the person's, or a default of the server's, as printable text."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    titles = dict(field.choices)
    if isinstance(value, list):
        return ", ".join(titles.get(item, printable(str(item))) for item in value) or "none"
    if field.kind is Kind.CHOICE:
        return titles.get(str(value), printable(str(value)))
    return printable(value) if isinstance(value, str) else json.dumps(value)

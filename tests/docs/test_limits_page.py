"""The bounds of the client in docs/limits.md are those of the source."""

import re
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Final

import pytest

from raxol_mcp.client.spec import ClientSpec
from raxol_mcp.core.client_ledger import ClientOptions

PAGE: Final = (Path(__file__).parents[2] / "docs" / "limits.md").read_text("utf-8")
CLIENT: Final = PAGE.partition("\n## The client\n")[2]

KIB: Final = 1024
MIB: Final = 1024 * 1024

# The beginning of a row: what its second cell says, in order, as `module.NAME`.
CONSTANTS: Final[Mapping[str, tuple[tuple[str, float], ...]]] = {
    "questions of one round": (("core.traffic._MAX_ASKED", 1),),
    "a reservation that nobody spent": (("core.reservations.TTL", 1),),
    "reservations that nobody spent": (("core.reservations.MAX_LIVE", 1),),
    "sessions that a server forgets": (("core.session.MAX_REJECTIONS", 1),),
    "servers whose era is remembered": (("core.verdicts.MAX_VERDICTS", 1),),
    "tokens that are looked at": (("wire.replies.MAX_TOKENS", 1),),
    "`instructions`": (("core.greeting._MAX_INSTRUCTIONS", KIB),),
    "a reason's `text`": (("errors.MAX_TEXT", 1),),
    "pages of a list": (("client.catalogue._MAX_PAGES", 1),),
    "entries of a list; their bytes": (
        ("client.definitions.MAX_ENTRIES", 1),
        ("client.definitions.MAX_TOTAL_BYTES", MIB),
    ),
    "a name; a URI": (
        ("client.definitions._MAX_NAME", 1),
        ("client.definitions._MAX_URI_BYTES", KIB),
    ),
    "an input schema": (("client.definitions.MAX_SCHEMA_BYTES", KIB),),
    "checking one result by it": (("client.outputs._MAX_CHECKS", 1),),
    "output schemas kept compiled": (("client.outputs._MAX_KEPT", 1),),
    "a description; a title": (
        ("client.definitions.MAX_DESCRIPTION_BYTES", KIB),
        ("client.definitions._MAX_TITLE_BYTES", 1),
    ),
    "annotations, `_meta` and icons": (
        ("client.definitions._MAX_EXTRA_BYTES", KIB),
        ("client.definitions._MAX_ICONS", 1),
    ),
    "arguments of a prompt": (("client.definitions._MAX_ARGUMENTS", 1),),
    "complaints about one list": (("client.definitions._MAX_PROBLEMS", 1),),
    "values of a completion": (("client.readers._MAX_COMPLETIONS", 1),),
    "`message` of an elicitation": (
        ("client.answers._MAX_MESSAGE", KIB),
        ("client.answers._MAX_ID", 1),
        ("client.answers._MAX_URL", KIB),
    ),
    "a form": (("client.forms._MAX_FIELDS", 1), ("client.forms._MAX_BYTES", KIB)),
    "messages of a sampling request": (("client.sampling._MAX_MESSAGES", 1),),
    "roots that a handler gives": (("client.answers._MAX_ROOTS", 1),),
    "coroutines of callbacks": (("client.user.MAX_TASKS", 1),),
    "URIs that are subscribed to": (("client.subscriptions.MAX_URIS", 1),),
    "a subscription whose stream was lost": (
        ("client.subscriptions._FIRST_RETRY", 1),
        ("client.subscriptions._LONGEST_RETRY", 1),
    ),
    "what waits for a server that does not read": (
        ("transports.outbox.MAX_QUEUED_MESSAGES", 1),
        ("transports.outbox.MAX_QUEUED_BYTES", MIB),
    ),
    "a server that reads nothing": (("client.opening._STALL_TIMEOUT", 1),),
    "stderr that is kept": (
        ("transports.child_errors._MAX_LINES", 1),
        ("transports.child_errors._MAX_BYTES", KIB),
        ("transports.child_errors._MAX_LINE_BYTES", KIB),
    ),
    "from the end of its stdout": (("transports.child_connection._EXIT_WAIT", 1),),
    "from its exit": (
        ("transports.child_connection._HELD_WAIT", 1),
        ("transports.child_connection._HELD_AT_MOST", 1),
    ),
    "ending: after its input was closed": (("transports.process_tree._KILLED_WAIT", 1),),
    "a URL; the name of a host": (
        ("transports.http_client.target._MAX_URL", 1),
        ("transports.http_client.target._MAX_HOST", 1),
    ),
    "looking a name up": (("transports.http_client.addresses.RESOLVE_TIMEOUT", 1),),
    "addresses of a name": (("transports.http_client.addresses.MAX_ADDRESSES", 1),),
    "a notification or an answer": (("transports.http_client.exchange._ACCEPTANCE_TIMEOUT", 1),),
    "notifications and answers on their way": (
        ("transports.http_client.backlog.AT_ONCE", 1),
        ("transports.http_client.backlog.MANY", 1),
    ),
    "headers of an answer": (
        ("transports.http_client.connections.MAX_HEADERS", 1),
        ("transports.http_client.connections.MAX_HEADER_BYTES", 1),
    ),
    "body of a refusal": (
        ("transports.http_client.channel._REFUSAL_BYTES", KIB),
        ("transports.http_client.channel._REFUSAL_TIMEOUT", 1),
    ),
    "`WWW-Authenticate`": (
        ("transports.http_client.reasons._MAX_CHALLENGE", 1),
        ("transports.http_client.reasons._MAX_PARAMETERS", 1),
    ),
    "`Retry-After`": (("transports.http_client.reasons.MAX_RETRY_AFTER", 1),),
    "what follows an answer": (
        ("transports.http_client.channel._REST_BYTES", KIB),
        ("transports.http_client.channel._REST_TIMEOUT", 1),
    ),
    "a connection without a request": (("transports.http_client.connections._KEEP_ALIVE", 1),),
    "`retry` of a stream": (
        ("transports.http_client.resumption.SHORTEST_WAIT", 1),
        ("transports.http_client.resumption.LONGEST_RETRY", 1),
    ),
    "resuming the stream of a call": (
        ("transports.http_client.exchange._TRIES", 1),
        ("transports.http_client.resumption.LONGEST_WAIT", 1),
    ),
    "opening the GET stream": (("transports.http_client.listening._TRIES", 1),),
    "a session waits for its GET stream": (("transports.http_client.link._STREAM_TIMEOUT", 1),),
    "HTTP+SSE of 2024-11-05": (("transports.http_client.two_endpoints.ENDPOINT_TIMEOUT", 1),),
    "failures of one origin": (("transports.http_client.tables._THRESHOLD", 1),),
    "`DELETE` when a session ends": (("transports.http_client.link._DELETE_TIMEOUT", 1),),
    "an `.mcp.json`": (("client.config.MAX_FILE_BYTES", MIB), ("client.config._MAX_DEPTH", 1)),
    "servers of it": (("client.config.MAX_SERVERS", 1),),
    "what its variables expand to": (("client.entries._MAX_EXPANDED", MIB),),
    "arguments, variables, headers": (("client.spec_checks._MAX_ITEMS", 1),),
    "servers of a group that are being": (("client.group._AT_ONCE", 1),),
    "`list_tools(timeout=)`": (("client.group._LIST_TIMEOUT", 1),),
    "files that are trusted": (
        ("client.trust.MAX_ALLOWED", 1),
        ("client.trust._MAX_STORE_BYTES", MIB),
    ),
    "waiting for another program": (("client.owned_files._LOCK_PATIENCE", 1),),
    "`--args`": (("cli.given_arguments.MAX_BYTES", MIB),),
    "a question: characters": (
        ("cli.questions._MAX_CHARACTERS", 1),
        ("cli.questions._MAX_LINES", 1),
        ("cli.form_fields._MAX_FIELDS", 1),
        ("cli.form_fields._MAX_CHOICES", 1),
        ("cli.form_fields._MAX_LABEL", 1),
    ),
    "answers that do not fit": (("cli.terminal.TRIES", 1),),
    "an address to be opened": (("cli.web_addresses._MAX_LENGTH", 1),),
    "starting a browser": (("cli.web_addresses._OPENING_TIMEOUT", 1),),
    "notes while a question waits": (("cli.screen._MAX_HELD", 1),),
    "the text of one log message": (("cli.server_log._MAX_TEXT", 1),),
    "ending, once the client has stopped": (("cli.client_session._EXIT_TIMEOUT", 1),),
}

# Rows of `ClientSpec`, and of what it does not let one choose.
OPTIONS: Final = {
    **{
        f"`{name}`": getattr(ClientSpec("a", command="a"), name)
        for name in ("pool_size", "queue_limit", "call_timeout", "answer_timeout", "init_timeout")
    },
    **{
        f"`{name}`": getattr(ClientSpec("a", command="a"), name)
        for name in ("probe_timeout", "reconnect", "era_ttl", "connect_timeout", "chunk_timeout")
    },
    "`max_message_bytes`": ClientSpec("a", command="a").max_message_bytes / MIB,
}
CHOSEN: Final = ClientOptions("", None, False, {}, {}, {})
KEPT: Final = {
    "requests that wait for the user's answer": CHOSEN.max_answering,
    "open `subscriptions/listen`": CHOSEN.max_listening,
    "rounds of questions": CHOSEN.max_rounds,
    "questions of the server that wait": CHOSEN.max_questions,
}


def numbers(beginning: str) -> list[float]:
    """Return the numbers in the second cell of the one row of the client that begins so."""
    (row,) = re.findall(rf"^\| {re.escape(beginning)}.*$", CLIENT, re.MULTILINE)
    cell = str(row).split(" | ")[1]
    return [float(number.replace(",", "")) for number in re.findall(r"\d[\d,]*(?:\.\d+)?", cell)]


@pytest.mark.parametrize("beginning", CONSTANTS)
def test_a_bound_is_that_of_the_source(beginning: str) -> None:
    expected = []
    for name, unit in CONSTANTS[beginning]:
        module, _, constant = name.rpartition(".")
        expected.append(getattr(import_module(f"raxol_mcp.{module}"), constant) / unit)
    assert numbers(beginning)[: len(expected)] == expected


@pytest.mark.parametrize(("beginning", "value"), [*OPTIONS.items(), *KEPT.items()])
def test_a_default_is_that_of_the_source(beginning: str, value: float) -> None:
    assert numbers(beginning)[0] == value


def test_the_core_begins_with_the_defaults_of_a_spec() -> None:
    """ours: whoever uses the core without a spec has the same bounds."""
    spec = ClientSpec("a", command="a")
    shared = set(ClientSpec.__slots__) & set(ClientOptions.__struct_fields__)
    assert len(shared) >= 9
    assert {name: getattr(CHOSEN, name) for name in shared} == {
        name: getattr(spec, name) for name in shared
    }

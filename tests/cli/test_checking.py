"""What `check` finds out, and how it tells it."""

from dataclasses import dataclass
from typing import Annotated

import pytest

from raxol_mcp import Ask, Server, Tool, allow_all, deny_all
from raxol_mcp.cli.checking import described, report_of


@dataclass
class Confirm:
    """A form."""

    confirm: bool


def make_server(**options: object) -> Server:
    """Return a server that has one of everything."""
    server = Server("everything", **options)  # type: ignore[arg-type]  # options of the test

    @server.tool(destructive=True)
    def wipe(sure: Annotated[Confirm, Ask("Wipe?")]) -> str:
        """Wipe."""
        return "wiped"

    @server.tool
    async def look() -> str:
        """Look."""
        return "seen"

    @server.resource("note://one")
    def one() -> str:
        return "1"

    @server.resource("note://{name}")
    def note(name: str) -> str:
        return name

    @server.prompt
    def greet() -> str:
        return "Hello"

    return server


def test_everything_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAXOL_MCP_ENV", "dev")
    server = make_server(
        authorizer=allow_all(), authorizer_source="configured", read_authorizer=deny_all()
    )
    assert report_of(server) == {
        "name": "everything",
        "authorizer": "configured",
        "read_authorizer": True,
        "environment": "dev",
        "tools": [
            {
                "name": "wipe",
                "sensitive": True,
                "guarded": True,
                "isolation": "thread",
                "asks": ["sure"],
            },
            {
                "name": "look",
                "sensitive": False,
                "guarded": True,
                "isolation": "task",
                "asks": [],
            },
        ],
        "resources": ["note://one"],
        "resource_templates": ["note://{name}"],
        "prompts": ["greet"],
        "refusals": [],
        "network_refusals": [],
    }


def test_what_keeps_it_from_starting_is_reported() -> None:
    report = report_of(make_server())
    assert report["authorizer"] == "none"
    assert not report["tools"][0]["guarded"]
    assert report["refusals"] == make_server().refusals()


def test_an_authorizer_that_nobody_chose_is_told_apart() -> None:
    report = report_of(make_server(authorizer=allow_all()))
    assert (report["authorizer"], report["refusals"]) == ("default", [])


def test_in_production_the_network_gates_refuse(monkeypatch: pytest.MonkeyPatch) -> None:
    """rulings: whatever is not dev or test is production."""
    monkeypatch.delenv("RAXOL_MCP_ENV", raising=False)
    report = report_of(make_server(authorizer=allow_all()))
    assert report["environment"] == "production"
    assert report["network_refusals"] == [
        "everything is not served over a network in production, because nobody has decided who "
        "may call tools (name --allow-tools, --allow-all-tools or --authorizer) and who may read "
        "(name --allow-reads or --read-authorizer); RAXOL_MCP_ENV=dev is for a machine where that "
        "does not matter"
    ]


def test_a_tool_that_cannot_be_served_is_a_refusal() -> None:
    """A definition alone, with a callback that no other process could find."""
    server = Server()
    server.registry.register(
        Tool(
            name="lost",
            description="Lost.",
            input_schema={"type": "object"},
            callback=lambda arguments, context: "",
            isolation="process",
        )
    )
    (refusal,) = report_of(server)["refusals"]
    assert refusal.startswith("the tool 'lost' cannot be served: ")


def test_a_report_for_people_says_what_to_look_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAXOL_MCP_ENV", "test")
    assert described(report_of(make_server(authorizer=allow_all()))) == (
        "server           everything\n"
        "authorizer       there is one, but nobody chose it "
        '(authorizer_source is not "configured")\n'
        "read authorizer  none: every read is allowed\n"
        "\n"
        "tools (2)\n"
        "  wipe  runs in a thread, sensitive, guarded, asks a person first\n"
        "  look  runs in a task\n"
        "resources (1)\n"
        "  note://one\n"
        "resource templates (1)\n"
        "  note://{name}\n"
        "prompts (1)\n"
        "  greet\n"
        "\n"
        "starts           yes\n"
        "network          nothing refuses one in this environment (test)\n"
    )
    text = described(report_of(make_server()))
    assert "  wipe  runs in a thread, sensitive, NOT GUARDED, asks a person first\n" in text
    assert "starts           no: 1 tool(s) are annotated sensitive" in text


def test_a_server_without_tools_can_be_described() -> None:
    assert "\ntools (0)\n" in described(report_of(Server()))

"""What `raxol-mcp check` finds out about a server, without starting it.

Judges and describes; prints nothing. No tool and no authorizer is called.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, TypedDict

from raxol_mcp.cli.network import Network
from raxol_mcp.errors import ConfigurationError
from raxol_mcp.server.deployment import environment
from raxol_mcp.server.prepared import PreparedTool

if TYPE_CHECKING:
    from raxol_mcp.server.app import Server
    from raxol_mcp.server.definitions import Tool

__all__ = ["Report", "ToolReport", "described", "report_of"]


class ToolReport(TypedDict):
    """One tool. `asks` are the parameters that a person fills in before it runs."""

    name: str
    sensitive: bool
    guarded: bool
    isolation: str
    asks: list[str]


class Report(TypedDict):
    """What `check --json` writes.

    `authorizer` is "configured" (somebody chose it), "default" (there is one, but nobody said
    that they chose it) or "none". `refusals` are the reasons why the server does not start or a
    tool cannot be served; `network_refusals` those why it would not be served over HTTP, with
    the same options and in this `environment`.
    """

    name: str
    authorizer: str
    read_authorizer: bool
    environment: str
    tools: list[ToolReport]
    resources: list[str]
    resource_templates: list[str]
    prompts: list[str]
    refusals: list[str]
    network_refusals: list[str]


def report_of(server: Server, network: Network | None = None) -> Report:
    """Look at a server that has not started; `network` is how it would be served over HTTP."""
    registry = server.registry
    guarded = server.authorizer is not None
    refusals = server.refusals()
    tools = [_tool(tool, guarded, refusals) for tool in registry.tools()]
    if server.authorization_configured():
        authorizer = "configured"
    else:
        authorizer = "default" if guarded else "none"
    return {
        "name": server.name,
        "authorizer": authorizer,
        "read_authorizer": server.read_authorization_configured(),
        "environment": environment(),
        "tools": tools,
        "resources": [resource.uri for resource in registry.resources()],
        "resource_templates": [template.uri_template for template in registry.templates()],
        "prompts": [prompt.name for prompt in registry.prompts()],
        "refusals": refusals,
        "network_refusals": (network or Network()).refusals(server),
    }


def described(report: Report) -> str:
    """Write a report for people, ending in a line break."""
    return "\n".join(_lines(report)) + "\n"


def _tool(tool: Tool, guarded: bool, refusals: list[str]) -> ToolReport:
    asks: list[str] = []
    isolation: str = tool.isolation
    try:
        prepared = PreparedTool(tool)
    except ConfigurationError as error:
        refusals.append(f"the tool {tool.name!r} cannot be served: {error}")
    else:
        asks = [ask.name for ask in prepared.asks]
        if isolation == "auto":
            isolation = "thread" if prepared.in_thread else "task"
    return {
        "name": tool.name,
        "sensitive": tool.sensitive,
        "guarded": guarded,
        "isolation": isolation,
        "asks": asks,
    }


_AUTHORIZERS = {
    "configured": "chosen: it decides about every call",
    "default": 'there is one, but nobody chose it (authorizer_source is not "configured")',
    "none": "none: every call is allowed, but for sensitive tools",
}
_AUTHORIZERS_OF_READS = {
    True: "chosen: it decides about every read",
    False: "none: every read is allowed",
}


def _lines(report: Report) -> Iterator[str]:
    yield f"server           {report['name']}"
    yield f"authorizer       {_AUTHORIZERS[report['authorizer']]}"
    yield f"read authorizer  {_AUTHORIZERS_OF_READS[report['read_authorizer']]}"
    yield ""
    yield f"tools ({len(report['tools'])})"
    width = max((len(tool["name"]) for tool in report["tools"]), default=0)
    for tool in report["tools"]:
        yield f"  {tool['name']:{width}}  {', '.join(_notes(tool))}"
    for title, names in (
        ("resources", report["resources"]),
        ("resource templates", report["resource_templates"]),
        ("prompts", report["prompts"]),
    ):
        if names:
            yield f"{title} ({len(names)})"
            yield from (f"  {name}" for name in names)
    yield ""
    yield from _verdict("starts", report["refusals"], "yes")
    ready = f"nothing refuses one in this environment ({report['environment']})"
    yield from _verdict("network", report["network_refusals"], ready)


def _notes(tool: ToolReport) -> list[str]:
    notes = [f"runs in a {tool['isolation']}"]
    if tool["sensitive"]:
        notes += ["sensitive", "guarded" if tool["guarded"] else "NOT GUARDED"]
    if tool["asks"]:
        notes.append("asks a person first")
    return notes


def _verdict(what: str, refusals: list[str], otherwise: str) -> Iterator[str]:
    if not refusals:
        yield f"{what:<17}{otherwise}"
    for refusal in refusals:
        yield f"{what:<17}no: {refusal}"

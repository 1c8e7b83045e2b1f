"""A client that does what the scenarios of the official conformance harness ask of one.

`make conformance` has the harness run it, once for each scenario, against a server of the
harness's own that watches what comes:

    python examples/conformance_client.py http://localhost:8000/mcp

The harness names the scenario in MCP_CONFORMANCE_SCENARIO, and in MCP_CONFORMANCE_CONTEXT, as
JSON, what it wants to have called. Without a scenario everything the server has is looked at.
Which era the server is of, the client finds out by itself.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Awaitable, Callable

from raxol_mcp import Accept, CallResult, Client, ClientSpec, ElicitRequest, SamplingRequest

# The revisions that begin with a handshake; the newer ones have none.
HANDSHAKES = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")


# -- what the server may ask of the person behind the client ----------------------------------


def accept(request: ElicitRequest) -> Accept:
    """Send every form as it comes: what is left out is filled in with its defaults."""
    return Accept()


def say_nothing(request: SamplingRequest) -> dict[str, object]:
    """Be a model without an opinion."""
    return {"role": "assistant", "content": {"type": "text", "text": "..."}, "model": "none"}


# -- the scenarios ----------------------------------------------------------------------------


def text(result: CallResult) -> str:
    """Return what a tool said, which must not be an error."""
    assert not result.is_error, result
    return result.text


async def look(client: Client) -> None:
    """List whatever the server has."""
    capabilities = client.status().capabilities
    if "tools" in capabilities:
        await client.list_tools()
    if "resources" in capabilities:
        await client.list_resources()
        await client.list_resource_templates()
    if "prompts" in capabilities:
        await client.list_prompts()


async def list_tools(client: Client) -> None:
    """List the tools."""
    await client.list_tools()


async def add(client: Client) -> None:
    """Call a tool with two numbers."""
    (tool,) = await client.list_tools()
    assert text(await client.call_tool(tool.name, {"a": 5, "b": 3})) == "The sum of 5 and 3 is 8"


async def be_asked(client: Client) -> None:
    """Call a tool that puts a form, whose defaults are to come back."""
    await client.list_tools()
    assert text(await client.call_tool("test_client_elicitation_defaults"))


async def come_back(client: Client) -> None:
    """Call a tool whose stream ends before its answer; the client comes back for it."""
    said = text(await client.call_tool("test_reconnection"))
    assert said == "Reconnection test completed successfully"


async def carry_state(client: Client) -> None:
    """Answer what tools ask first; what one of them gave to carry is not for the others."""
    for name, said in {
        "test_mrtr_echo_state": "echo-state-ok",
        "test_mrtr_unrelated": "unrelated-ok",
        "test_mrtr_no_state": "no-state-ok",
        "test_mrtr_no_result_type": "no-result-type-test-ok",
    }.items():
        assert text(await client.call_tool(name)) == said


async def call_everything(client: Client) -> None:
    """Call every tool, read every resource and get every prompt, so that all headers are seen."""
    for tool in await client.list_tools():
        assert text(await client.call_tool(tool.name))
    for resource in await client.list_resources():
        await client.read_resource(resource.uri)
    for prompt in await client.list_prompts():
        await client.get_prompt(prompt.name)


async def call_what_is_asked(client: Client) -> None:
    """Make the calls that the harness wrote down, whose arguments are mirrored into headers."""
    await client.list_tools()
    for call in json.loads(os.environ["MCP_CONFORMANCE_CONTEXT"])["toolCalls"]:
        assert text(await client.call_tool(call["name"], call["arguments"]))


async def call_what_is_valid(client: Client) -> None:
    """Call every tool that was let through: those whose header annotations are wrong are not."""
    names = [tool.name for tool in await client.list_tools()]
    assert names == ["valid_tool"]
    assert text(await client.call_tool("valid_tool", {"region": "eu"}))


async def return_a_schema(client: Client) -> None:
    """Send a schema back as it came, each keyword of it."""
    schemas = {tool.name: tool.input_schema for tool in await client.list_tools()}
    schema = schemas["json_schema_2020_12_tool"]
    assert text(await client.call_tool("json_schema_echo", {"schema": schema})) == "echoed"


SCENARIOS: dict[str, Callable[[Client], Awaitable[None]]] = {
    "elicitation-sep1034-client-defaults": be_asked,
    "http-custom-headers": call_what_is_asked,
    "http-invalid-tool-headers": call_what_is_valid,
    "http-standard-headers": call_everything,
    "initialize": list_tools,
    "json-schema-2020-12-preservation": return_a_schema,
    "json-schema-ref-no-deref": list_tools,
    "request-metadata": list_tools,
    "sep-2322-client-request-state": carry_state,
    "sse-retry": come_back,
    "tools_call": add,
}


async def main(url: str) -> None:
    """Connect, do what the scenario asks, and disconnect."""
    # The harness is on this machine, which is nowhere that a client goes without being told.
    spec = ClientSpec("harness", url=url, allow_private=True)
    capable = Client(spec, elicitation=accept, sampling=say_nothing, roots=[])
    async with capable as client:
        version = os.environ.get("MCP_CONFORMANCE_PROTOCOL_VERSION")
        if version is not None:
            era = "handshake" if version in HANDSHAKES else "stateless"
            assert client.status().era == era, client.status()
        scenario = os.environ.get("MCP_CONFORMANCE_SCENARIO")
        await (look if scenario is None else SCENARIOS[scenario])(client)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))

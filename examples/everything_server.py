"""A server with one of everything, for the official conformance harness.

The names, texts and shapes are the harness's own: `make conformance` runs it against this program.
It serves HTTP on loopback:

    python examples/everything_server.py --port 8000
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import json
from typing import Annotated

import msgspec

from raxol_mcp import (
    Audio,
    Context,
    Elicit,
    EmbeddedResource,
    Image,
    InputRequired,
    ListRoots,
    Message,
    Sample,
    Server,
    Text,
    Tool,
    ToolError,
    allow_all,
    serve_http,
)

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
)
WAV = base64.b64decode("UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAIA+AAACABAAZGF0YQAAAAA=")

server = Server(
    "everything",
    title="One of everything",
    authorizer=allow_all(),
    read_authorizer=allow_all(),
    authorizer_source="configured",
)


def form(**properties: dict[str, object]) -> dict[str, object]:
    """Write a form whose every field must be filled in."""
    return {"type": "object", "properties": properties, "required": list(properties)}


# -- results ----------------------------------------------------------------------------------


@server.tool
async def test_simple_text() -> str:
    """Return one text."""
    return "This is a simple text response for testing."


@server.tool
async def test_image_content() -> Image:
    """Return an image."""
    return Image(PNG, "image/png")


@server.tool
async def test_audio_content() -> Audio:
    """Return a sound."""
    return Audio(WAV, "audio/wav")


@server.tool
async def test_embedded_resource() -> EmbeddedResource:
    """Return a resource within the result."""
    return EmbeddedResource(
        "test://embedded-resource",
        text="This is an embedded resource content.",
        mime_type="text/plain",
    )


@server.tool
async def test_multiple_content_types() -> list[Text | Image | EmbeddedResource]:
    """Return a text, an image and a resource."""
    return [
        Text("Multiple content types test:"),
        Image(PNG, "image/png"),
        EmbeddedResource(
            "test://mixed-content-resource",
            text='{"test":"data","value":123}',
            mime_type="application/json",
        ),
    ]


@server.tool
async def test_error_handling() -> str:
    """Fail."""
    raise ToolError("This tool intentionally returns an error for testing")


@server.tool
async def test_tool_with_progress(ctx: Context) -> str:
    """Report progress three times."""
    for progress in (0, 50, 100):
        ctx.progress(progress, 100, f"Completed step {progress} of 100")
        await asyncio.sleep(0.05)
    return "Progress completed"


@server.tool
async def test_tool_with_logging(ctx: Context) -> str:
    """Log three messages."""
    for message in ("Tool execution started", "Tool processing data", "Tool execution completed"):
        ctx.info(message)
        await asyncio.sleep(0.05)
    return "Logging completed"


@server.tool
async def test_logging_tool(ctx: Context) -> str:
    """Try to log: only those who asked for it may see it."""
    ctx.info("nobody who did not ask for it sees this")
    return "Logged"


JSON_SCHEMA = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}


async def json_schema_tool(arguments: dict[str, object], context: Context) -> str:
    """Return the arguments, which have passed the schema."""
    return json.dumps(arguments)


server.registry.register(
    Tool(
        name="json_schema_2020_12_tool",
        description="Tool with JSON Schema 2020-12 features",
        input_schema=JSON_SCHEMA,
        callback=json_schema_tool,
    )
)


@server.tool
async def test_x_mcp_header(
    region: Annotated[str, msgspec.Meta(extra_json_schema={"x-mcp-header": "Region"})],
) -> str:
    """Take an argument that clients also send as a header."""
    return f"region: {region}"


# -- asking in the middle of the work (handshake era) -----------------------------------------


@server.tool
async def test_sampling(prompt: str, ctx: Context) -> str:
    """Let the client's model answer."""
    answer = await ctx.sample(
        {
            "messages": [{"role": "user", "content": {"type": "text", "text": prompt}}],
            "maxTokens": 100,
        }
    )
    content = answer.get("content")
    text = content.get("text") if isinstance(content, dict) else content
    return f"LLM response: {text}"


async def elicited(ctx: Context, message: str, schema: dict[str, object]) -> str:
    """Put a form and describe the answer."""
    answer = await ctx.elicit(message, schema)
    return f"action={answer.action}, content={json.dumps(answer.content or {})}"


@server.tool
async def test_elicitation(message: str, ctx: Context) -> str:
    """Ask the person behind the client."""
    schema = form(
        username={"type": "string", "description": "User's response"},
        email={"type": "string", "description": "User's email address"},
    )
    return "User response: " + await elicited(ctx, message, schema)


@server.tool
async def test_elicitation_sep1034_defaults(ctx: Context) -> str:
    """Ask with a default for every kind of field."""
    schema: dict[str, object] = {
        "type": "object",
        "properties": {
            "name": {"type": "string", "default": "John Doe"},
            "age": {"type": "integer", "default": 30},
            "score": {"type": "number", "default": 95.5},
            "status": {
                "type": "string",
                "enum": ["active", "inactive", "pending"],
                "default": "active",
            },
            "verified": {"type": "boolean", "default": True},
        },
        "required": [],
    }
    return "Elicitation completed: " + await elicited(ctx, "Please check these values", schema)


@server.tool
async def test_elicitation_sep1330_enums(ctx: Context) -> str:
    """Ask with every kind of choice."""

    def titled(*names: str) -> list[dict[str, str]]:
        return [{"const": f"value{n}", "title": name} for n, name in enumerate(names, 1)]

    options = ["option1", "option2", "option3"]
    schema: dict[str, object] = {
        "type": "object",
        "properties": {
            "untitledSingle": {"type": "string", "enum": options},
            "titledSingle": {
                "type": "string",
                "oneOf": titled("First Option", "Second Option", "Third Option"),
            },
            "legacyEnum": {
                "type": "string",
                "enum": ["opt1", "opt2", "opt3"],
                "enumNames": ["Option One", "Option Two", "Option Three"],
            },
            "untitledMulti": {"type": "array", "items": {"type": "string", "enum": options}},
            "titledMulti": {
                "type": "array",
                "items": {"anyOf": titled("First Choice", "Second Choice", "Third Choice")},
            },
        },
        "required": [],
    }
    return "Elicitation completed: " + await elicited(ctx, "Please choose", schema)


@server.tool
async def test_reconnection(ctx: Context) -> str:
    """Let go of the stream; the result is there when the client comes back for it."""
    ctx.release_stream(retry=0.5)
    await asyncio.sleep(0.2)
    return "Reconnection test completed successfully"


# -- asking before the work (both eras) -------------------------------------------------------

WHO = Elicit("What is your name?", form(name={"type": "string"}))


def field(ctx: Context, key: str, name: str) -> str | None:
    """Read one field of an accepted form; None when there is no such answer."""
    answer = ctx.answers.get(key)
    content = answer.get("content") if isinstance(answer, dict) else None
    value = content.get(name) if isinstance(content, dict) else None
    return value if isinstance(value, str) else None


def sample(text: str, max_tokens: int = 100) -> Sample:
    """Write a request to the client's model."""
    message = {"role": "user", "content": {"type": "text", "text": text}}
    return Sample({"messages": [message], "maxTokens": max_tokens})


@server.tool
async def test_missing_capability(ctx: Context) -> str | InputRequired:
    """Need what the client may not have declared."""
    if "model" not in ctx.answers:
        return InputRequired({"model": sample("Anything")})
    return "The client can sample"


@server.tool
async def test_streaming_elicitation(ctx: Context) -> str | InputRequired:
    """Ask: in the stateless era no request may appear on the stream."""
    name = field(ctx, "user_name", "name")
    return InputRequired({"user_name": WHO}) if name is None else f"Hello, {name}!"


@server.tool
async def test_input_required_result_elicitation(ctx: Context) -> str | InputRequired:
    """Ask for a name."""
    name = field(ctx, "user_name", "name")
    return InputRequired({"user_name": WHO}) if name is None else f"Hello, {name}!"


@server.tool
async def test_input_required_result_sampling(ctx: Context) -> str | InputRequired:
    """Ask the client's model."""
    answer = ctx.answers.get("capital_question")
    if not isinstance(answer, dict):
        return InputRequired({"capital_question": sample("What is the capital of France?")})
    return json.dumps(answer.get("content"))


@server.tool
async def test_input_required_result_list_roots(ctx: Context) -> str | InputRequired:
    """Ask for the client's roots."""
    answer = ctx.answers.get("client_roots")
    if not isinstance(answer, dict):
        return InputRequired({"client_roots": ListRoots()})
    return f"Roots: {json.dumps(answer.get('roots'))}"


@server.tool
async def test_input_required_result_request_state(ctx: Context) -> str | InputRequired:
    """Get a state back that the client carried."""
    if ctx.state != "confirming" or "confirm" not in ctx.answers:
        ask = Elicit("Please confirm", form(ok={"type": "boolean"}))
        return InputRequired({"confirm": ask}, state="confirming")
    return "state-ok"


@server.tool
async def test_input_required_result_multiple_inputs(ctx: Context) -> str | InputRequired:
    """Ask for three things at once."""
    if not {"user_name", "greeting", "client_roots"} <= ctx.answers.keys():
        return InputRequired(
            {
                "user_name": WHO,
                "greeting": sample("Generate a greeting", 50),
                "client_roots": ListRoots(),
            },
            state="three",
        )
    return f"Hello, {field(ctx, 'user_name', 'name')}!"


@server.tool
async def test_input_required_result_multi_round(ctx: Context) -> str | InputRequired:
    """Ask twice, one after the other."""
    name, color = field(ctx, "step1", "name"), field(ctx, "step2", "color")
    if ctx.state is None or (not ctx.state.startswith("named:") and name is None):
        ask = Elicit("Step 1: What is your name?", form(name={"type": "string"}))
        return InputRequired({"step1": ask}, state="step 1")
    if color is None:
        ask = Elicit("Step 2: What is your favorite color?", form(color={"type": "string"}))
        return InputRequired({"step2": ask}, state=f"named:{name}")
    return f"{ctx.state.removeprefix('named:')} likes {color}"


@server.tool
async def test_input_required_result_tampered_state(ctx: Context) -> str | InputRequired:
    """Ask with a state that must come back as it went."""
    if "confirm" not in ctx.answers:
        ask = Elicit("Please confirm", form(ok={"type": "boolean"}))
        return InputRequired({"confirm": ask}, state="sealed")
    return "state-ok"


@server.tool
async def test_input_required_result_capabilities(ctx: Context) -> str | InputRequired:
    """Ask only for what the client declared."""
    if ctx.answers:
        return "Answered"
    everything: dict[str, Elicit | Sample | ListRoots] = {
        "user_name": WHO,
        "question": sample("Anything"),
        "client_roots": ListRoots(),
    }
    possible = {key: request for key, request in everything.items() if ctx.supports(request)}
    return InputRequired(possible) if possible else "The client declared nothing"


# -- changes ----------------------------------------------------------------------------------


async def _nothing(arguments: dict[str, object], context: Context) -> str:
    return "nothing"


@server.tool
async def test_trigger_tool_change() -> str:
    """Change the list of tools."""
    extra = Tool(
        name="test_extra_tool",
        description="Comes and goes.",
        input_schema={"type": "object"},
        callback=_nothing,
    )
    server.registry.register(extra)
    server.registry.unregister(extra.kind, extra.key)
    return "changed"


@server.tool
async def test_trigger_prompt_change() -> str:
    """Say that the list of prompts changed."""
    server.notify("notifications/prompts/list_changed")
    return "changed"


# -- resources --------------------------------------------------------------------------------


@server.resource("test://static-text", mime_type="text/plain")
async def static_text() -> str:
    """Return a text that never changes."""
    return "This is the content of the static text resource."


@server.resource("test://static-binary", mime_type="image/png")
async def static_binary() -> bytes:
    """Return an image."""
    return PNG


@server.resource("test://watched-resource", mime_type="text/plain")
async def watched() -> str:
    """Return something to subscribe to."""
    return "Watched resource content"


@server.resource("test://template/{id}/data", mime_type="application/json")
async def templated(id: str) -> str:
    """Return the data of one id."""
    return json.dumps({"id": id, "templateTest": True, "data": f"Data for ID: {id}"})


# -- prompts ----------------------------------------------------------------------------------


@server.prompt
async def test_simple_prompt() -> str:
    """Say something simple."""
    return "This is a simple prompt for testing."


@server.prompt
async def test_prompt_with_arguments(
    arg1: Annotated[str, "First test argument"], arg2: Annotated[str, "Second test argument"]
) -> str:
    """Say what the arguments are."""
    return f"Prompt with arguments: arg1='{arg1}', arg2='{arg2}'"


@server.completion("test_prompt_with_arguments", "arg1")
async def complete_arg1(value: str) -> list[str]:
    """Suggest values."""
    return [word for word in ("paris", "park", "party") if word.startswith(value)]


@server.prompt(name="test_prompt_with_embedded_resource")
async def prompt_with_embedded_resource(
    resourceUri: Annotated[str, "URI of the resource to embed"],  # the harness's name
) -> list[Message]:
    """Show a resource."""
    resource = EmbeddedResource(
        resourceUri, text="Embedded resource content for testing.", mime_type="text/plain"
    )
    return [
        Message("user", resource),
        Message("user", Text("Please process the embedded resource above.")),
    ]


@server.prompt
async def test_prompt_with_image() -> list[Message]:
    """Show an image."""
    return [
        Message("user", Image(PNG, "image/png")),
        Message("user", Text("Please analyze the image above.")),
    ]


@server.prompt
async def test_input_required_result_prompt(ctx: Context) -> str | InputRequired:
    """Ask for a context first."""
    context = field(ctx, "user_context", "context")
    if context is None:
        ask = Elicit("What context should the prompt use?", form(context={"type": "string"}))
        return InputRequired({"user_context": ask})
    return f"Use this context: {context}"


def main() -> None:
    """Serve until stopped."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="0: one that is free")
    port: int = parser.parse_args().port
    asyncio.run(serve_http(server, port=port, ready=lambda url: print(url, flush=True)))


if __name__ == "__main__":
    main()

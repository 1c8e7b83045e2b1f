"""No MCP library: an asyncio loop that parses, answers and writes. `python bare.py [tools]`.

The floor that a server on this loop and this codec cannot go below. It checks nothing and bounds
nothing: not a server to use.
"""

import asyncio
import sys

import msgspec

VERSION = "io.modelcontextprotocol/protocolVersion"
FURTHER = "One more tool, with an ordinary description of what it does."

encode = msgspec.json.Encoder().encode
decode = msgspec.json.Decoder(dict[str, object]).decode


def schema(**properties: object) -> dict[str, object]:
    """Write an object schema."""
    return {"type": "object", "properties": properties, "additionalProperties": False}


def definitions(further: int) -> list[dict[str, object]]:
    """Write the list of tools."""
    more = schema(a={"type": "integer"}, b={"type": "string", "default": "x"})
    tools: list[dict[str, object]] = [
        {"name": f"tool_{number:05d}", "description": FURTHER, "inputSchema": more}
        for number in range(further)
    ]
    echo = schema(text={"type": "string"})
    return [{"name": "echo", "description": "Echo.", "inputSchema": echo}, *tools]


async def echo(text: str) -> str:
    """Echo."""
    return text


async def answer(message: dict[str, object], tools: list[dict[str, object]]) -> dict[str, object]:
    """Answer a request; what is in it is believed."""
    params = message.get("params")
    assert isinstance(params, dict)
    result: dict[str, object]
    match message["method"]:
        case "tools/call":
            text = await echo(params["arguments"]["text"])
            result = {"content": [{"type": "text", "text": text}]}
        case "tools/list":
            result = {"tools": tools}
        case _:
            who = {"name": "bare", "version": "0"}
            result = {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": who}
    if VERSION in params.get("_meta", ()):
        result["resultType"] = "complete"
    return {"jsonrpc": "2.0", "id": message["id"], "result": result}


async def serve(tools: list[dict[str, object]]) -> None:
    """Serve standard input and output until the end of input."""
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    writer, _ = await loop.connect_write_pipe(asyncio.Protocol, sys.stdout)
    while line := await reader.readline():
        message = decode(line)
        if "id" in message:
            writer.write(encode(await answer(message, tools)) + b"\n")


if __name__ == "__main__":
    asyncio.run(serve(definitions(int(sys.argv[1]) if sys.argv[1:] else 0)))

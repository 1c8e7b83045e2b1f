"""A tool that a person must agree to, and every way in which they can fail to.

    python examples/approve_a_delete.py

The authorizer leaves the decision to the human behind the client. This program is that client: it
answers in every possible way, checks what came of it, and fails when a promise is not kept. Client
and server talk in memory, in the handshake era.
"""

import asyncio
from collections.abc import Mapping
from typing import Any

from raxol_mcp import (
    AuthorizationContext,
    Decision,
    Limits,
    MemoryTransport,
    Server,
    allow,
    ask,
    nonblocking,
)

Message = dict[str, Any]  # a message as JSON has it

deleted: list[str] = []


@nonblocking
def authorizer(
    name: str, arguments: Mapping[str, object], context: AuthorizationContext
) -> Decision:
    """Let a person decide about deletes; allow everything else."""
    return ask(f"Delete {arguments.get('path')!r}?") if name == "delete" else allow()


server = Server("example", authorizer=authorizer, limits=Limits(elicitation_timeout=0.2))


@server.tool(destructive=True)
def delete(path: str) -> str:
    """Delete a file; this one only takes a note of it."""
    deleted.append(path)
    return f"deleted {path}"


async def call(client: MemoryTransport, path: str, answer: Message | None) -> tuple[bool, str]:
    """Call the tool and answer the question with `answer`; return (is it an error, the text)."""
    call = asyncio.ensure_future(
        client.request("tools/call", {"name": "delete", "arguments": {"path": path}})
    )
    question: Message = await client.receive()
    assert question["method"] == "elicitation/create"
    assert question["params"]["message"] == f"Delete {path!r}?"
    if answer is not None:
        client.send({"jsonrpc": "2.0", "id": question["id"], **answer})
    result: Any = (await call)["result"]
    return result.get("isError") is True, result["content"][0]["text"]


async def main() -> None:
    """Answer in every way, over one connection."""
    async with server, MemoryTransport(server) as client:
        await client.request(
            "initialize",
            {
                "protocolVersion": "2025-11-25",
                "capabilities": {"elicitation": {}},
                "clientInfo": {"name": "approve_a_delete", "version": "1"},
            },
        )
        yes: Message = {"result": {"action": "accept", "content": {"approve": True}}}
        assert await call(client, "a.txt", yes) == (False, "deleted a.txt")
        assert deleted == ["a.txt"]

        refusals: dict[str, Message | None] = {
            "a no": {"result": {"action": "decline"}},
            "a dismissal": {"result": {"action": "cancel"}},
            "an empty form": {"result": {"action": "accept"}},
            "a form that does not approve": {
                "result": {"action": "accept", "content": {"approve": False}}
            },
            "something like a yes": {
                "result": {"action": "accept", "content": {"approve": "true"}}
            },
            "an error": {"error": {"code": -32603, "message": "no screen"}},
            "silence": None,
        }
        for name, answer in refusals.items():
            failed, text = await call(client, "b.txt", answer)
            assert failed, name
            assert '"error":"authorization_required"' in text, name
            print(f"{name:30} {text}")
        assert deleted == ["a.txt"], "only the yes deleted anything"


if __name__ == "__main__":
    asyncio.run(main())

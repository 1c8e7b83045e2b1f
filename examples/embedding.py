"""A server inside a program that has its own way of moving messages.

    python examples/embedding.py

No transport: decoded messages go in, replies and pushes come out. This is what a web framework, a
queue or a test holds on to.
"""

import asyncio
import json

from raxol_mcp import Server, TimedOut, decode, encode

server = Server("embedded")
started = asyncio.Event()


@server.tool
async def slow() -> str:
    """Take for ever."""
    started.set()
    await asyncio.Event().wait()
    return "never"


@server.tool
async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def request(id: int, method: str, **params: object) -> object:
    """Make the message that a client would send, as it comes out of `decode`."""
    message = {"jsonrpc": "2.0", "id": id, "method": method, "params": params}
    return decode(json.dumps(message).encode())


async def main() -> None:
    """Use every part of the seam once."""
    async with server:
        # handle_message waits for the reply.
        reply = await server.handle_message(
            request(1, "tools/call", name="add", arguments={"a": 1, "b": 2})
        )
        assert reply is not None, "a request gets a reply"
        assert json.loads(encode(reply))["result"]["structuredContent"] == {"result": 3}

        # With a timeout, a call that takes longer is cancelled.
        try:
            await server.handle_message(request(2, "tools/call", name="slow"), timeout=0.05)
        except TimedOut as error:
            print(error)
        else:
            raise AssertionError("it took for ever, in no time")

        # request does not wait; cancel reaches the call wherever it is, and its reply is None.
        started.clear()
        handle = server.request(request(3, "tools/call", name="slow"))
        await started.wait()
        server.cancel(handle)
        assert await handle is None

        # What the server pushes to a connection goes to whoever subscribed to it.
        with server.subscribe("window-1") as pushes:
            server.notify("notifications/tools/list_changed")
            pushed = json.loads(encode(await pushes.next()))
            assert pushed["method"] == "notifications/tools/list_changed"

        await asyncio.sleep(0)  # the cancelled workers have ended
        assert server.stats()["in_flight"] == 0, "nothing is left behind"


if __name__ == "__main__":
    asyncio.run(main())

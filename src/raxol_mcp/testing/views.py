"""A Textual app in a test, used as an agent uses it: through the tools of its view.

```python
with AppView(TodoApp) as app:
    app.type_into("new", "Milk", submit=True).assert_widget("count", content="1 to do, 0 done")
    app.toggle("items.Checkbox-milk").click("clear").refute_tool("clear.click")
```

Not a second way into the app: every call goes through a server, with its checks of names and
arguments, to the app in its own thread, and returns when the app has settled. Plain functions, for
plain tests: each runs the server's loop as long as it needs, so none works inside a running loop.

What can be chained returns the view. What is not there fails the test, and says what is.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final, TypeVar

from raxol_mcp.server.authorizer import allow_all
from raxol_mcp.transports.memory import MemoryTransport
from raxol_mcp.wire.jsonrpc import JSONObject

if TYPE_CHECKING:
    from typing import Self

    from raxol_mcp.server.app import Server
    from raxol_mcp.views.textual import MakeApp

__all__ = ["AppView"]

R = TypeVar("R")

_VERSION: Final = "2025-11-25"
_NAMED: Final = 60  # tools or widgets that a failure names


class AppView:
    """One session of an app. Use it as a context manager, or call `close`.

    `make_app` is the app's class, or a function that returns a new app; `size` is columns and
    rows. Names of widgets and tools are without the session: "save", "save.click".
    """

    def __init__(self, make_app: MakeApp[R], *, size: tuple[int, int] = (120, 40)) -> None:
        from raxol_mcp.views.textual import textual_server

        # A person is asked by the server; here nobody is there, and the test is the person.
        self._server: Server = textual_server(
            make_app, size=size, question=None, authorizer=allow_all()
        )
        self._runner = asyncio.Runner()
        self._client = MemoryTransport(self._server, through_bytes=True)
        self._session = ""
        self.said = ""
        """What the last thing that was done said."""
        self._open = True
        try:
            self._runner.run(self._begin())
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop the app. Again: nothing."""
        if self._open:
            self._open = False
            try:
                self._runner.run(self._end())
            finally:
                self._runner.close()

    # -- acting: each returns the view ----------------------------------------------------------

    def click(self, id: str) -> Self:
        """Click a button."""
        return self.do(id, "click")

    def type_into(self, id: str, text: str, *, submit: bool = False) -> Self:
        """Type text, after what is there, and press enter if `submit`."""
        return self.do(id, "type_into", text=text, **({"submit": True} if submit else {}))

    def clear(self, id: str) -> Self:
        """Empty an input."""
        return self.do(id, "clear")

    def select(self, id: str, option: str) -> Self:
        """Choose an option by its label, or a tab."""
        if f"{id}.select_tab" in self.tools():
            return self.do(id, "select_tab", tab=option)
        return self.do(id, "select", option=option)

    def toggle(self, id: str, option: str | None = None, *, on: bool | None = None) -> Self:
        """Switch something on or off, to the other when `on` is left out."""
        given = {"option": option, "on": on}
        return self.do(id, "toggle", **{name: v for name, v in given.items() if v is not None})

    def do(self, id: str, action: str, **arguments: object) -> Self:
        """Call any action of a widget. Fails the test when it is not there, or fails."""
        self.call(f"{id}.{action}", **arguments)
        return self

    def press(self, *keys: str) -> Self:
        """Press keys: characters, or names such as "enter" and "ctrl+s"."""
        self.said = self._tool("send_keys", {"keys": list(keys), "session": self._session})
        return self

    # -- looking --------------------------------------------------------------------------------

    def call(self, tool: str, **arguments: object) -> str:
        """Call a tool of the view; return what it says. Fails the test when it fails."""
        self.said = self._tool(f"{self._session}.{tool}", arguments)
        return self.said

    def tools(self) -> list[str]:
        """Name the tools of the view that there are now, in their order."""
        start = f"{self._session}."
        names = [str(tool["name"]) for tool in self._runner.run(self._listed())]
        found = [name.removeprefix(start) for name in names if name.startswith(start)]
        return [name for name in found if name != "discover_tools"]

    def screen(self) -> str:
        """Read the screen as text."""
        return self._tool("screenshot", {"session": self._session})

    def svg(self) -> str:
        """Draw the screen as SVG."""
        return self._tool("screenshot", {"session": self._session, "format": "svg"})

    def structure(self) -> list[JSONObject]:
        """Read what there is on the screen, as a tree: see `raxol_mcp.views.screenshot`."""
        raw = self._tool("screenshot", {"session": self._session, "format": "json"})
        nodes: list[JSONObject] = json.loads(raw)
        return nodes

    def widget(self, id: str) -> JSONObject:
        """Find a widget. Fails the test when it is not on the screen."""
        for node in _flat(self.structure()):
            if node.get("id") == id:
                return node
        raise AssertionError(f"there is no widget {id!r}; there is {self._ids()}")

    # -- asserting: each returns the view -------------------------------------------------------

    def assert_widget(
        self, id: str, predicate: Callable[[JSONObject], bool] | None = None, **facts: object
    ) -> Self:
        """Assert that a widget is there, that it has these facts, and that `predicate` holds."""
        widget = self.widget(id)
        for name, expected in facts.items():
            actual = widget.get(name)
            assert actual == expected, f"{id}: {name} is {actual!r}, not {expected!r}"
        assert predicate is None or predicate(widget), f"{id}: is {widget!r}"
        return self

    def refute_widget(self, id: str) -> Self:
        """Assert that a widget is not there."""
        found = [node for node in _flat(self.structure()) if node.get("id") == id]
        assert not found, f"there is a widget {id!r}: {found[0]!r}"
        return self

    def assert_tool(self, name: str) -> Self:
        """Assert that a tool is there: "save.click"."""
        names = self.tools()
        assert name in names, f"there is no tool {name!r}; there is {_some(names)}"
        return self

    def refute_tool(self, name: str) -> Self:
        """Assert that a tool is not there."""
        assert name not in self.tools(), f"there is a tool {name!r}"
        return self

    def assert_tool_count(self, expected: int) -> Self:
        """Assert how many tools there are."""
        names = self.tools()
        assert len(names) == expected, f"there are {len(names)} tools: {_some(names)}"
        return self

    def assert_screen_contains(self, text: str) -> Self:
        """Assert that a text is on the screen, in one line."""
        screen = self.screen()
        assert text in screen, f"{text!r} is not on the screen:\n{screen}"
        return self

    def refute_screen_contains(self, text: str) -> Self:
        """Assert that a text is nowhere on the screen."""
        screen = self.screen()
        assert text not in screen, f"{text!r} is on the screen:\n{screen}"
        return self

    def assert_screen_matches(self, expected: Sequence[Mapping[str, object]]) -> Self:
        """Assert that nodes with these facts are on the screen, in this order.

        Each of `expected` matches the next node, from the top, that has all of its members;
        `children` is not one of them.
        """
        nodes = _flat(self.structure())
        for wanted in expected:
            found = any(
                all(node.get(name) == value for name, value in wanted.items()) for node in nodes
            )
            assert found, f"{dict(wanted)!r} is not on the screen, or not in this order"
        return self

    def until_screen_contains(self, text: str, *, within: float = 5.0) -> Self:
        """Wait until a text is on the screen: for what an app does in the background."""
        self._runner.run(self._wait(text, within))
        return self.assert_screen_contains(text)

    # -- inside ---------------------------------------------------------------------------------

    def _tool(self, name: str, arguments: Mapping[str, object]) -> str:
        answer = self._runner.run(self._client.request(*_call(name, arguments)))
        result = answer.get("result")
        if not isinstance(result, dict):
            names = self.tools()
            raise AssertionError(f"there is no tool {name!r}; there is {_some(names)}")
        said = _said(result)
        assert result.get("isError") is not True, f"{name}: {said}"
        return said

    def _ids(self) -> str:
        return _some([str(node["id"]) for node in _flat(self.structure()) if "id" in node])

    async def _begin(self) -> None:
        await self._server.start()
        self._client.open()
        hello: JSONObject = {"protocolVersion": _VERSION, "capabilities": {}, "clientInfo": _SELF}
        await self._client.request("initialize", hello)
        answer = await self._client.request(*_call("start_session", {}))
        result = answer.get("result")
        assert isinstance(result, dict), f"the session did not start: {answer!r}"
        assert result.get("isError") is not True, _said(result)
        self._session = str(result["structuredContent"]["session"])

    async def _end(self) -> None:
        if self._client.closed is None:
            self._client.close()
        await self._server.stop()

    async def _listed(self) -> list[JSONObject]:
        tools: list[JSONObject] = []
        params: JSONObject = {}
        while True:
            result = (await self._client.request("tools/list", params))["result"]
            assert isinstance(result, dict), "a list has a result"
            tools += result["tools"]
            if "nextCursor" not in result:
                return tools
            params = {"cursor": result["nextCursor"]}

    async def _wait(self, text: str, within: float) -> None:
        name, arguments = "screenshot", {"session": self._session}
        for _ in range(max(1, int(within / 0.05))):
            answer = await self._client.request(*_call(name, arguments))
            if text in _said(answer.get("result")):
                return
            await asyncio.sleep(0.05)


_SELF: Final = {"name": "raxol-mcp-testing", "version": "1"}


def _call(name: str, arguments: Mapping[str, object]) -> tuple[str, JSONObject]:
    return "tools/call", {"name": name, "arguments": dict(arguments)}


def _said(result: object) -> str:
    if not isinstance(result, dict):
        return ""
    texts = []
    for item in result.get("content", []):
        found = item.get("text")
        if found is None:
            found = item.get("resource", {}).get("text", "")
        texts.append(found)
    return "\n".join(texts)


def _flat(nodes: Sequence[JSONObject]) -> Iterator[JSONObject]:
    """Walk nodes depth first, a parent before what is in it."""
    for node in nodes:
        yield node
        children = node.get("children")
        if isinstance(children, list):
            yield from _flat(children)


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return (", ".join(names[:_NAMED]) or "none") + more

"""What `tests/acceptance/test_tools.py` cannot see: threads that get between two steps."""

from collections.abc import Iterator

from raxol_mcp import Server, Tool


def tool(name: str) -> Tool:
    """Make a tool that takes any arguments."""
    return Tool(name, "A tool.", {"type": "object"}, lambda *_: None)


class Interrupted(tuple[str, ...]):
    """Names, of which each look at them lets a call of another tool get between."""

    between: Iterator[object] = iter(())

    def __contains__(self, name: object) -> bool:
        next(self.between, None)
        return super().__contains__(name)


def test_tools_may_be_registered_in_a_thread_while_others_are_called() -> None:
    """ours: the loop prepares the tools it calls, whatever is registered meanwhile elsewhere."""
    server = Server()
    a, b, c, d = map(tool, "abcd")
    server.registry.register(b, c, d)  # and `a` no more
    tools = server._tools
    for called in (a, b):
        tools._prepare(called)
    names = Interrupted("ab")
    names.between = (tools._prepare(called) for called in (c, d))
    tools.forget(names)
    assert list(tools._prepared) == [b, c, d]

"""The resources of a session: its widgets, its model values, and both with the tools in one.

| URI | what is read |
|---|---|
| `raxol://session/ID/widgets` | the screenshot as data |
| `raxol://session/ID/context` | session, focus, model, widgets and tools |
| `raxol://session/ID/model/KEY` | one value of the app's own |

All are read anew each time. Of the context a caller gets the parts that it may read by
themselves, and the tools that it may call: it is a short cut, never a way around.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from raxol_mcp.errors import ToolError
from raxol_mcp.server.content import to_plain
from raxol_mcp.server.definitions import Audience, Resource
from raxol_mcp.views.screenshot import structured
from raxol_mcp.views.tree import Tree, walk
from raxol_mcp.wire.jsonrpc import JSONObject, UnencodableResult, encode_result

if TYPE_CHECKING:
    from raxol_mcp.server.app import Server
    from raxol_mcp.server.context import Context
    from raxol_mcp.views.discovery import Visible

__all__ = ["MAX_MODEL_VALUES", "Model", "SessionResources"]

_logger = logging.getLogger("raxol_mcp.views")
_JSON: Final = "application/json"
MAX_MODEL_VALUES: Final = 256  # ours: each is a resource of its own, looked at for every update
MAX_KEY: Final = 128
MAX_VALUE_BYTES: Final = 1024 * 1024  # ours: of one value, as JSON

Model = Callable[[], Mapping[str, object]]
_Reader = Callable[["Context"], Awaitable[object]]


class SessionResources:
    """Makes the resources of one session, and knows which model values there are.

    `visible` gives the tools of the session that a caller may call.
    """

    def __init__(
        self,
        server: Server,
        session: str,
        *,
        snapshot: Callable[[], Tree],
        model: Model | None,
        visible: Visible,
        audience: Audience | None,
    ) -> None:
        self._server = server
        self._session = session
        self._snapshot = snapshot
        self._model = model
        self._visible = visible
        self._audience = audience
        self._values: dict[str, bytes] = {}
        self._refused: set[str] = set()
        self.base = f"raxol://session/{session}"
        self.widgets = f"{self.base}/widgets"
        self.context = f"{self.base}/context"

    def fixed(self) -> list[Resource]:
        """Make the two resources that every session has."""
        return [
            self._resource(self.widgets, "Widget Tree", self._read_widgets),
            self._resource(self.context, "Context Tree", self._read_context),
        ]

    def of_model(self, key: str) -> Resource:
        """Make the resource of one value of the model."""

        async def read(context: Context) -> object:
            value = self._current().get(key, self)
            if value is self:
                raise ToolError(f"the session {self._session} has no value {key!r} any more")
            return _written(value)[1].decode()  # JSON whatever it is: a text has its quotes

        return self._resource(self.uri_of(key), f"Model: {key}", read)

    def uri_of(self, key: str) -> str:
        """Return the URI of one value of the model."""
        return f"{self.base}/model/{quote(key, safe='')}"

    def look(self) -> tuple[list[str], list[str], list[str]]:
        """Look at the model again: the keys that came, that are another value now, that went.

        A value that JSON cannot carry is left out, and a model that fails is as it was; the log
        has why.
        """
        if self._model is None:
            return [], [], []
        try:
            current = self._current()
        except Exception:  # the app's own code: the view goes on without it
            _logger.exception("the model of session %s failed: it stays as it was", self._session)
            return [], [], []
        found = self._encodable(current)
        before, now = self._values, {key: encoded for key, (_, encoded) in found.items()}
        self._values = now
        return (
            [key for key in now if key not in before],
            [key for key, value in now.items() if key in before and before[key] != value],
            [key for key in before if key not in now],
        )

    def forget(self) -> list[str]:
        """Return the URIs of every resource there is, and forget the values."""
        uris = [self.widgets, self.context, *map(self.uri_of, self._values)]
        self._values = {}
        return uris

    # -- inside -------------------------------------------------------------------------------

    def _resource(self, uri: str, name: str, read: _Reader) -> Resource:
        return Resource(
            uri=uri,
            name=name,
            callback=read,
            description=f"{name} of the session {self._session}",
            mime_type=_JSON,
            audience=self._audience,
        )

    def _current(self) -> Mapping[str, object]:
        return {} if self._model is None else self._model()

    def _encodable(self, current: Mapping[str, object]) -> dict[str, tuple[object, bytes]]:
        found: dict[str, tuple[object, bytes]] = {}
        for key, value in current.items():
            if len(found) == MAX_MODEL_VALUES:
                self._refuse("...", f"only {MAX_MODEL_VALUES} values are shown")
                break
            try:
                if not 0 < len(key) <= MAX_KEY:
                    raise UnencodableResult(f"a key has 1 to {MAX_KEY} characters")
                quote(key)  # a lone surrogate is no part of a URI
                found[key] = _written(value)
            except (UnencodableResult, UnicodeEncodeError) as error:
                self._refuse(key[:MAX_KEY], str(error))
        return found

    def _refuse(self, key: str, reason: str) -> None:
        if key not in self._refused and len(self._refused) <= MAX_MODEL_VALUES:
            self._refused.add(key)  # once: it would be said again with every update
            _logger.error("model value %r of session %s: %s", key, self._session, reason)

    async def _read_widgets(self, context: Context) -> object:
        return structured(self._snapshot())

    async def _read_context(self, context: Context) -> object:
        told: JSONObject = {"session": {"id": self._session}}
        values: JSONObject = {}
        for key, (plain, _) in self._encodable(self._current()).items():
            if key in self._values and await self._server.may_read(context, self.uri_of(key)):
                values[key] = plain
        told["model"] = values
        if await self._server.may_read(context, self.widgets):
            tree = self._snapshot()
            told["focus"] = _marked(tree)
            told["widgets"] = structured(tree)
        told["tools"] = [
            {"name": tool.name, "description": tool.description}
            for tool in await self._visible(context)
        ]
        return told


def _written(value: object) -> tuple[object, bytes]:
    """Return a value as plain JSON, and encoded. Raises `UnencodableResult`."""
    plain = to_plain(value, str_keys=True)
    return plain, bytes(encode_result(plain, max_bytes=MAX_VALUE_BYTES))


def _marked(tree: Tree) -> JSONObject:
    """Say what has the focus and the pointer, by id, innermost."""
    marked: JSONObject = {}
    for visit in walk(tree):
        for mark in ("focused", "hover"):
            if visit.node.id and visit.node.attributes.get(mark) is True:
                marked[mark] = visit.node.id
    return marked

"""Kinds of Textual widgets with rows or branches: tables and trees."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, ClassVar, Final

from textual.widgets import DataTable, DirectoryTree, Tree
from textual.widgets.tree import TreeNode

from raxol_mcp.errors import ToolError
from raxol_mcp.views.textual_kinds import (
    Kind,
    choice,
    chosen,
    labels_of,
    lines_of,
    named,
    plain,
    schema,
    window,
)
from raxol_mcp.views.walker import Action

if TYPE_CHECKING:
    from textual.widget import Widget

    from raxol_mcp.views.textual_hands import Hands
    from raxol_mcp.views.tree import Node
    from raxol_mcp.wire.jsonrpc import JSONObject

__all__ = ["TABLES"]

_SHOWN: Final = 30  # rows of a table or a tree, in a screenshot
_CELL: Final = 200  # characters of one cell
_MAX_NODES: Final = 2_000  # of one reading of a tree


class _DataTable(Kind[DataTable[object]]):
    name, widget, role = "DataTable", DataTable, "table"

    def label(self, widget: DataTable[object]) -> str:
        return plain(widget.border_title)

    def facts(self, widget: DataTable[object]) -> dict[str, object]:
        columns = _columns(widget)
        rows = [" | ".join(_row(widget, row)) for row in range(min(widget.row_count, _SHOWN))]
        more = widget.row_count - len(rows)
        if more:
            rows.append(f"… and {more} more rows")
        return {
            "content": "\n".join([" | ".join(columns), *rows]),
            "value": widget.cursor_row if widget.row_count and widget.show_cursor else None,
            "columns": columns,
            "cursor": widget.cursor_type if widget.show_cursor else "none",
        }

    def actions(self, node: Node) -> Sequence[Action]:
        what = named(node, "table")
        columns = node.attributes.get("columns")
        column = choice(
            [str(name) for name in columns] if isinstance(columns, list) else [],
            "The label of the column.",
        )
        actions = [
            Action(
                name="get_rows",
                description=f"Read rows of {what}; the last ones by default.",
                input_schema=schema({}, **window()),
                read_only=True,
            ),
            Action(
                name="click_header",
                description=f"Click the header of a column of {what}, by which many are sorted.",
                input_schema=schema({"column": column}),
            ),
        ]
        if node.attributes.get("cursor") != "none":
            row: JSONObject = {"type": "integer", "minimum": 0, "description": "From 0."}
            actions.append(
                Action(
                    name="select_row",
                    description=f"Move the cursor of {what} to a row, and press enter.",
                    input_schema=schema({"row": row}, column=column),
                )
            )
        return actions

    async def act(
        self, hands: Hands, widget: DataTable[object], action: str, arguments: Mapping[str, object]
    ) -> object:
        columns = _columns(widget)
        if action == "get_rows":
            read = lines_of([*map(str, range(widget.row_count))], arguments)
            numbers = read.pop("lines")
            assert isinstance(numbers, list), "as it was made"
            rows = [dict(zip(columns, _row(widget, int(row)), strict=True)) for row in numbers]
            return {"rows": rows, **read}
        wanted = arguments.get("column")
        at = None if wanted is None else chosen(columns, wanted)
        if action == "click_header":
            assert at is not None, "the schema says so"
            column = widget.ordered_columns[at]
            # What a click on it posts; where in the header it is depends on the scrolling.
            widget.post_message(DataTable.HeaderSelected(widget, column.key, at, column.label))
            return f"clicked {columns[at]!r}"
        row = arguments["row"]
        if not isinstance(row, int) or not row < widget.row_count:
            raise ToolError(f"there are {widget.row_count} rows now, and the first is 0")
        await hands.focus(widget)
        widget.move_cursor(row=row, column=at)
        await hands.quiet()
        await hands.press(widget, "enter")
        return f"selected row {row}"


class _Tree(Kind[Tree[object]]):
    name = "Tree"
    widget: ClassVar[type[Widget]] = Tree
    role = "tree"

    def label(self, widget: Tree[object]) -> str:
        return plain(widget.border_title) or plain(widget.root.label)

    def facts(self, widget: Tree[object]) -> dict[str, object]:
        lines = [
            "  " * (len(path) - 1) + _mark(node) + path[-1]
            for path, node in _nodes(widget, most=_SHOWN + 1)
        ]
        if len(lines) > _SHOWN:
            lines[_SHOWN:] = ["…"]
        cursor = widget.cursor_node
        return {
            "content": "\n".join(lines),
            "value": None if cursor is None else plain(cursor.label, most=_CELL),
        }

    def actions(self, node: Node) -> Sequence[Action]:
        what = named(node, "tree")
        path: JSONObject = {
            "type": "array",
            "items": {"type": "string"},
            "description": "The labels on the way to it; that of the root may be left out.",
        }
        doing = (
            ("expand", "Open a branch of"),
            ("collapse", "Close a branch of"),
            ("select_node", "Move the cursor to a node, and press enter, in"),
        )
        return [
            *(
                Action(
                    name=name,
                    description=f"{does} {what}.",
                    input_schema=schema({"path": path}),
                )
                for name, does in doing
            ),
            Action(
                name="get_nodes",
                description=f"Read the nodes of {what} that are open to be seen.",
                input_schema=schema({}, **window()),
                read_only=True,
            ),
        ]

    async def act(
        self, hands: Hands, widget: Tree[object], action: str, arguments: Mapping[str, object]
    ) -> object:
        if action == "get_nodes":
            return _read(widget, arguments)
        path = arguments["path"]
        node = _found(widget, path if isinstance(path, list) else [])
        await hands.focus(widget)
        widget.move_cursor(node)
        await hands.quiet()
        if action == "select_node":
            await hands.press(widget, "enter")
            return f"selected {plain(node.label, most=_CELL)!r}"
        if not node.allow_expand:
            raise ToolError("it has nothing in it to be opened")
        if node.is_expanded is (action == "collapse"):
            await hands.press(widget, "space")
        return "opened" if action == "expand" else "closed"


class _DirectoryTree(_Tree):
    name = "DirectoryTree"
    widget: ClassVar[type[Widget]] = DirectoryTree


def _columns(widget: DataTable[object]) -> list[str]:
    return labels_of([column.label for column in widget.ordered_columns])


def _row(widget: DataTable[object], row: int) -> list[str]:
    return [
        " ".join(plain(cell, most=_CELL).split()) for cell in map(_text, widget.get_row_at(row))
    ]


def _text(cell: object) -> object:
    """Cells may be anything; numbers and the like are shown as they are written."""
    return str(cell) if isinstance(cell, int | float | bool) else cell


def _mark(node: TreeNode[object]) -> str:
    if not node.allow_expand:
        return "  "
    return "▼ " if node.is_expanded else "▶ "


def _nodes(
    widget: Tree[object], *, most: int
) -> Iterator[tuple[tuple[str, ...], TreeNode[object]]]:
    """Walk what is open, from the top; `most` nodes of it."""
    root = widget.root
    # Of many in a branch no more are looked at than will be seen.
    top = [root] if widget.show_root else list(islice(root.children, most))
    pending = list(reversed(_below((), top)))
    while pending and most:
        path, node = pending.pop()
        yield path, node
        most -= 1
        if node.is_expanded:
            pending += reversed(_below(path, list(islice(node.children, most))))


def _below(
    path: tuple[str, ...], nodes: Sequence[TreeNode[object]]
) -> list[tuple[tuple[str, ...], TreeNode[object]]]:
    labels = labels_of([node.label for node in nodes])
    return [((*path, label), node) for label, node in zip(labels, nodes, strict=True)]


def _read(widget: Tree[object], arguments: Mapping[str, object]) -> object:
    nodes = [
        {"path": list(path), "open": node.is_expanded if node.allow_expand else None}
        for path, node in _nodes(widget, most=_MAX_NODES)
    ]
    limit, offset = arguments.get("limit", 100), arguments.get("offset", 0)
    assert isinstance(limit, int), "the schema says so"
    assert isinstance(offset, int), "the schema says so"
    return {"nodes": nodes[offset : offset + limit], "offset": offset, "total": len(nodes)}


def _found(widget: Tree[object], wanted: Sequence[object]) -> TreeNode[object]:
    """Follow a path of labels through what is open. Raises ToolError that says where it ends."""
    root = widget.root
    below = _below((), [root] if widget.show_root else list(root.children))
    found: TreeNode[object] | None = None
    if widget.show_root and wanted and wanted[0] != below[0][0][-1]:
        wanted = [below[0][0][-1], *wanted]  # everything is below the root: it may be left out
    for label in wanted:
        if found is not None and not found.is_expanded:
            raise ToolError(f"{plain(found.label, most=_CELL)!r} is closed: expand it first")
        found = below[chosen([path[-1] for path, _ in below], label)][1]
        below = _below((), list(found.children))
    if found is None:
        raise ToolError("name a node by the labels on the way to it")
    return found


TABLES: Final = (_DataTable(), _Tree(), _DirectoryTree())

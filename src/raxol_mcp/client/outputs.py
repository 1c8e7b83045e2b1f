"""Whether the structured content of a result is what its tool said it would be.

MCP server/tools §Output Schema: a server must return what conforms, a client should check it.
Both the schema and the content are a stranger's, so checking is bounded: schemas that cannot be
checked safely are not used, and neither is one that would take too long for this content. A
schema of an unsupported dialect is an error, because MCP 2026-07-28 basic §JSON Schema says so.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from typing import TYPE_CHECKING, Final

from raxol_mcp.client.redaction import shown
from raxol_mcp.errors import ConfigurationError
from raxol_mcp.wire.texts import cut, printable

if TYPE_CHECKING:
    from raxol_mcp.client.results import CallResult, RemoteTool
    from raxol_mcp.schemas.json_schema import Validator
    from raxol_mcp.wire.jsonrpc import JSONObject

__all__ = ["output_problem"]

_logger = logging.getLogger("raxol_mcp.client")

_MAX_TEXT_BYTES: Final = 512
_MAX_KEPT: Final = 256
# A second or two at worst, and far beyond what honest servers need.
_MAX_CHECKS: Final = 50_000_000


class _Compiled:
    """What was made of one schema. `schema` is kept, so that its id stays its own."""

    __slots__ = ("problem", "schema", "validator")

    def __init__(self, tool: RemoteTool, schema: JSONObject) -> None:
        from raxol_mcp.schemas.json_schema import compile_schema

        self.schema = schema
        self.validator: Validator | None = None
        self.problem: str | None = None
        try:
            self.validator = compile_schema(schema)
        except ConfigurationError as error:
            why = printable(cut(str(error), _MAX_TEXT_BYTES))
            if _has_foreign_dialect(schema):
                self.problem = f"the output schema cannot be checked: {why}"
            else:
                _logger.warning("the output schema of %s is not used: %s", shown(tool.name), why)


# By the identity of the schema: a list that is read again makes new ones.
_compiled: OrderedDict[int, _Compiled] = OrderedDict()


def output_problem(tool: RemoteTool, result: CallResult) -> str | None:
    """Say in one bounded line why a result is not what its tool's output schema says.

    None when it is, when the tool has no such schema, when the tool failed, and when checking is
    not possible within bounds. The line names places and never a value.
    """
    schema = tool.output_schema
    if schema is None or result.is_error:
        return None
    if not result.has_structured:
        return "the tool has an output schema, and the result no structured content"
    compiled = _compiled_of(tool, schema)
    if compiled.validator is None:
        return compiled.problem
    if compiled.validator.needs_more(result.structured_content, _MAX_CHECKS):
        _logger.warning("a result of %s is too large to be checked", shown(tool.name))
        return None
    problem = compiled.validator.problems(result.structured_content, noun="structured content")
    return None if problem is None else printable(cut(problem, _MAX_TEXT_BYTES))


def _compiled_of(tool: RemoteTool, schema: JSONObject) -> _Compiled:
    compiled = _compiled.get(id(schema))
    if compiled is None or compiled.schema is not schema:
        compiled = _compiled[id(schema)] = _Compiled(tool, schema)
        if len(_compiled) > _MAX_KEPT:
            _compiled.popitem(last=False)
    else:
        _compiled.move_to_end(id(schema))
    return compiled


def _has_foreign_dialect(schema: JSONObject) -> bool:
    from raxol_mcp.schemas.admission import DIALECTS

    dialect = schema.get("$schema", DIALECTS[0])
    return not isinstance(dialect, str) or dialect.removesuffix("#") not in DIALECTS

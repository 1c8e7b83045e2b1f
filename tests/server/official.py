"""The official JSON Schemas of MCP, where a checkout of them lies beside this one."""

from __future__ import annotations

import functools
import json
from pathlib import Path

import jsonschema_rs
import pytest

REVISIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28")
_FOLDER = Path(__file__).resolve().parents[2].parent / "shared" / "schema"

needs_schemas = pytest.mark.skipif(
    not all((_FOLDER / f"{revision}.json").is_file() for revision in REVISIONS),
    reason="the official schemas are not at ../shared/schema",
)


@functools.cache
def validator(revision: str, name: str) -> jsonschema_rs.Validator:
    """Compile the definition `name` of a revision's schema."""
    schema = json.loads((_FOLDER / f"{revision}.json").read_text())
    defs = "$defs" if "$defs" in schema else "definitions"
    return jsonschema_rs.validator_for(
        {"$schema": schema["$schema"], defs: schema[defs], "allOf": [{"$ref": f"#/{defs}/{name}"}]}
    )

"""Validation by a JSON Schema that somebody wrote, for tools that bring their own.

Not used for tools made from functions, whose arguments are converted by their types. The
validator is jsonschema-rs, imported when the first schema is compiled. Patterns run in linear
time; references are never fetched; formats are annotations, as in 2020-12.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import TYPE_CHECKING, Final

from raxol_mcp.errors import ConfigurationError
from raxol_mcp.schemas.admission import Admitted, admit
from raxol_mcp.schemas.problems import Problem, quoted, sentence
from raxol_mcp.wire.jsonrpc import MAX_DEPTH, JSONObject

if TYPE_CHECKING:
    import jsonschema_rs

__all__ = ["Validator", "compile_schema"]

# The validator makes every error there is before it gives the first, and each costs thousands of
# times what the bare verdict does: a caller who sends a million wrong values would stop the loop.
_MAX_LISTED_CHECKS: Final = 100_000
# More than `sentence` names, so that it can say that there are more.
_MAX_ERRORS: Final = 32
# Stands for the value in the validator's messages: an argument may be long, or a secret.
_MASK: Final = "the value"


class Validator:
    """A compiled schema."""

    __slots__ = ("_admitted", "_compiled", "_schema")

    def __init__(
        self, schema: JSONObject, compiled: jsonschema_rs.Validator, admitted: Admitted
    ) -> None:
        """Use `compile_schema` instead."""
        self._schema = schema
        self._compiled = compiled
        self._admitted = admitted

    def needs_more(self, instance: object, checks: int) -> bool:
        """Say whether judging a value may take more than so many checks, some 20 ns each."""
        return _has_more(instance, checks // self._admitted.subschemas)

    def problems(self, instance: object, *, noun: str = "arguments") -> str | None:
        """Judge a JSON value: None when it conforms, else one sentence on everything wrong.

        The sentence names each place and never a value. Does not raise: what the validator
        itself cannot handle does not conform.
        """
        # The validator recurses in C and ends the process when its stack does.
        if _is_deeper(instance, MAX_DEPTH):
            return sentence([f"nested deeper than {MAX_DEPTH}"], noun=noun)
        try:
            if self._compiled.is_valid(instance):
                return None
            # Of a recursive schema there may be twice as many errors with each level of the value.
            bare = self._admitted.recursive or self.needs_more(instance, _MAX_LISTED_CHECKS)
            found = self._blamed(instance) if bare else self._errors(instance)
            return sentence(found or ["they do not fit the schema"], noun=noun)
        except Exception as error:  # jsonschema-rs raises what its parts raise
            return sentence([f"they cannot be checked ({type(error).__name__})"], noun=noun)

    def _errors(self, instance: object) -> list[Problem]:
        return [
            problem
            for error in islice(self._compiled.iter_errors(instance), _MAX_ERRORS)
            for problem in _problems(error)
        ]

    def _blamed(self, instance: object) -> list[Problem]:
        """Find the bad members of an object without asking the validator for its errors.

        The bare verdict is cheap whatever the schema.
        """
        import jsonschema_rs as rs

        schema = self._schema
        properties = schema.get("properties")
        if not isinstance(instance, dict) or not isinstance(properties, dict):
            return []
        required = schema.get("required")
        problems: list[Problem] = [
            ([name], "is required")
            for name in (required if isinstance(required, list) else ())
            if name not in instance
        ]
        parts = rs.validator_map_for(schema, pattern_options=rs.RegexOptions(), offline=True)
        for name, value in instance.items():
            if name in properties:
                pointer = name.replace("~", "~0").replace("/", "~1")
                part = parts.get(f"#/properties/{pointer}")
                if part is not None and not part.is_valid(value):
                    problems.append(([name], "does not fit its schema"))
            elif schema.get("additionalProperties") is False:
                problems.append(([name], "is unknown"))
        return problems


def compile_schema(schema: JSONObject) -> Validator:
    """Admit a schema and compile it.

    Raises ConfigurationError, one sentence on what to change, for what `admission`
    refuses, for what is no valid schema of its dialect, and for patterns that need more than
    linear time.
    """
    admitted = admit(schema)
    import jsonschema_rs as rs

    try:
        compiled = rs.validator_for(
            schema, pattern_options=rs.RegexOptions(), offline=True, mask=_MASK
        )
    except (rs.ValidationError, rs.ReferencingError, ValueError) as error:
        raise ConfigurationError(_reason(error)) from error
    return Validator(schema, compiled, admitted)


def _reason(error: Exception) -> str:
    message = getattr(error, "message", str(error))
    path: Sequence[str | int] = getattr(error, "instance_path", ())
    where = "/".join(map(str, path))
    if message == f'{_MASK} is not a "regex"':
        return (
            f"the JSON Schema has a pattern that is not supported, at {where!r}: patterns run in "
            "linear time, without look-around and back-references"
        )
    return f"the JSON Schema is not valid at {where!r}: {message}"


def _problems(error: jsonschema_rs.ValidationError) -> list[Problem]:
    path = error.instance_path
    kind = error.kind.name
    value = error.kind.value
    if kind == "required":
        return [([*path, value], "is required")]
    if kind in ("additionalProperties", "unevaluatedProperties") and isinstance(value, list):
        return [([*path, name], "is unknown") for name in value]
    subject = quoted(path) if path else "the whole"
    if error.message.startswith(_MASK):
        return [subject + error.message.removeprefix(_MASK)]
    return [f"{subject}: {error.message}"]


def _is_deeper(instance: object, depth: int) -> bool:
    level = [instance] if isinstance(instance, dict | list | tuple) else []
    for _ in range(depth):
        level = [
            inner
            for item in level
            for inner in (item.values() if isinstance(item, dict) else item)
            if isinstance(inner, dict | list | tuple)
        ]
        if not level:
            return False
    return True


def _has_more(instance: object, limit: int) -> bool:
    """Say whether a JSON value is made of more than `limit` values; counts no further."""
    count = 1
    pending = [instance]
    while pending and count <= limit:
        value = pending.pop()
        if isinstance(value, dict | list | tuple):
            count += len(value)
            inner = value.values() if isinstance(value, dict) else value
            pending.extend(item for item in inner if isinstance(item, dict | list | tuple))
    return count > limit

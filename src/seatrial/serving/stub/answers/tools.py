"""A valid call of a tool, made up from its JSON schema alone."""

import json
from collections.abc import Sequence
from typing import Any

from seatrial.serving.stub.answers.reply import Call

DEEPEST = 8
"""Schemas may refer to themselves."""


def made_up_call(tools: Sequence[dict[str, Any]], name: str | None, seed: int) -> Call:
    """A call of the tool `name`, or of one the seed picks."""
    functions = [tool["function"] for tool in tools]
    chosen = next((f for f in functions if f["name"] == name), functions[seed % len(functions)])
    schema = chosen.get("parameters") or {}
    return Call(chosen["name"], json.dumps(value_for(schema, schema) if schema else {}))


def value_for(schema: Any, root: dict[str, Any], depth: int = 0) -> Any:
    """The plainest value the schema allows."""
    if not isinstance(schema, dict) or depth > DEEPEST:
        return None
    if "$ref" in schema:
        return value_for(referred(schema["$ref"], root), root, depth + 1)
    if "const" in schema:
        return schema["const"]
    if schema.get("enum"):
        return schema["enum"][0]
    for choice in ("anyOf", "oneOf", "allOf"):
        if schema.get(choice):
            return value_for(schema[choice][0], root, depth + 1)
    kind = schema.get("type", "object" if "properties" in schema else "string")
    return of_kind(kind[0] if isinstance(kind, list) else kind, schema, root, depth)


def of_kind(kind: str, schema: dict[str, Any], root: dict[str, Any], depth: int) -> Any:
    if kind == "object":
        properties = schema.get("properties", {})
        required = schema.get("required", ())
        return {name: value_for(properties.get(name, {}), root, depth + 1) for name in required}
    if kind == "array":
        item = schema.get("items", {})
        return [value_for(item, root, depth + 1) for _ in range(schema.get("minItems", 0))]
    if kind in ("integer", "number"):
        return schema.get("minimum", 1)
    if kind == "boolean":
        return True
    if kind == "null":
        return None
    return "value".ljust(schema.get("minLength", 0), "e")[: schema.get("maxLength")]


def referred(pointer: str, root: dict[str, Any]) -> Any:
    found: Any = root
    for key in pointer.removeprefix("#/").split("/"):
        found = found.get(key) if isinstance(found, dict) else None
    return found

import json
from typing import Any

import pytest

from seatrial.serving.stub.answers.tools import made_up_call, value_for


def tool(name: str, parameters: dict[str, Any] | None = None) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "parameters": parameters}}


def test_a_named_tool_is_called_and_otherwise_the_seed_chooses() -> None:
    tools = [tool("a"), tool("b")]
    assert made_up_call(tools, "b", 0).name == "b"
    assert [made_up_call(tools, None, seed).name for seed in range(2)] == ["a", "b"]
    assert made_up_call(tools, "a", 0).arguments == "{}"


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"type": "object", "properties": {"a": {}, "b": {"type": "integer"}}, "required": ["b"]}, {"b": 1}),
        ({"enum": ["x", "y"]}, "x"),
        ({"const": 7}, 7),
        ({"anyOf": [{"type": "null"}, {"type": "string"}]}, None),
        ({"type": ["string", "null"], "maxLength": 3}, "val"),
        ({"type": "string", "minLength": 7}, "valueee"),
        ({"type": "array", "items": {"type": "boolean"}, "minItems": 2}, [True, True]),
        ({"type": "number", "minimum": 2.5}, 2.5),
    ],
)
def test_the_plainest_value_of_a_schema(schema: dict[str, Any], value: object) -> None:
    assert value_for(schema, schema) == value


def test_a_schema_may_refer_to_itself() -> None:
    node = {"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}}, "required": ["next"]}
    made = made_up_call([tool("f", {"$ref": "#/$defs/node", "$defs": {"node": node}})], None, 0)
    assert "next" in json.loads(made.arguments)

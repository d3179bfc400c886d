"""The chat template: messages to text, so that appending messages only appends text.

An assistant message renders to exactly what the stand-in generated for it, tool calls included; otherwise the
prompt of the next turn would leave the cached prefix at the last answer.
"""

import json
from collections.abc import Sequence
from typing import Any

START, END = "<|im_start|>", "<|im_end|>"
GENERATE = f"{START}assistant\n"

Message = dict[str, Any]


def render(
    messages: Sequence[Message], tools: Sequence[dict[str, Any]] = (), *, generate: bool = True
) -> str:
    """The prompt of a conversation; with `generate`, up to where the assistant's next words begin."""
    parts = [f"{START}tools\n{json.dumps(list(tools))}{END}\n"] if tools else []
    parts.extend(f"{START}{message.get('role')}\n{body(message)}{END}\n" for message in messages)
    if generate:
        parts.append(GENERATE)
    return "".join(parts)


def body(message: Message) -> str:
    calls = message.get("tool_calls") or ()
    functions = [call.get("function") or {} for call in calls]
    return said(
        text_of(message.get("content")),
        [call_text(str(function.get("name")), arguments_text(function)) for function in functions],
    )


def said(content: str, calls: Sequence[str]) -> str:
    """What the assistant says: words, then tool calls."""
    return "\n".join([content, *calls] if content else calls)


def call_head(name: str) -> str:
    return f'<tool_call>\n{{"name": {json.dumps(name)}, "arguments": '


CALL_TAIL = "}\n</tool_call>"


def call_text(name: str, arguments: str) -> str:
    return call_head(name) + arguments + CALL_TAIL


def arguments_text(function: dict[str, Any]) -> str:
    arguments = function.get("arguments", "{}")
    return arguments if isinstance(arguments, str) else json.dumps(arguments)


def text_of(content: Any) -> str:
    """The text of a message's content: a string, nothing, or a list of parts."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "".join(part_text(part) for part in content)
    return str(content)


def part_text(part: Any) -> str:
    if isinstance(part, dict):
        return str(part["text"]) if "text" in part else f"<|{part.get('type')}|>"
    return str(part)

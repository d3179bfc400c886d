"""Whole answers, in vLLM's shape."""

import secrets
import time
from dataclasses import dataclass
from typing import Any

from seatrial.serving.stub.answers.reply import Call
from seatrial.serving.stub.http.asked import Asked
from seatrial.serving.stub.http.logprob_shapes import chat_logprobs, completion_logprobs
from seatrial.serving.stub.http.work import Choice

FINGERPRINT = "vllm-0.32.0-stub"


@dataclass(frozen=True, slots=True)
class Stamp:
    """What all parts of one answer share."""

    id: str
    created: int
    model: str
    weights: str
    """What the log probabilities depend on."""

    @classmethod
    def of(cls, asked: Asked, root: str, request_id: str | None) -> "Stamp":
        prefix = "chatcmpl" if asked.chat else "cmpl"
        weights = "\0".join(asked.adapter) if asked.adapter else root
        return cls(f"{prefix}-{request_id or secrets.token_hex(8)}", int(time.time()), asked.model, weights)


def whole_body(asked: Asked, stamp: Stamp, choices: list[Choice], usage: dict[str, Any]) -> dict[str, Any]:
    shape = chat_choice if asked.chat else completion_choice
    body: dict[str, Any] = {
        "id": stamp.id,
        "object": "chat.completion" if asked.chat else "text_completion",
        "created": stamp.created,
        "model": stamp.model,
        "choices": [shape(asked, stamp, choice) for choice in choices],
        "service_tier": None,
        "system_fingerprint": FINGERPRINT,
        "usage": usage,
        "kv_transfer_params": None,
        "ec_transfer_params": None,
        "metrics": None,
    }
    if asked.chat:
        body["prompt_logprobs"] = None
        body["prompt_token_ids"] = choices[0].prompt.ids if asked.return_token_ids else None
        body["prompt_text"] = None
    return body


def chat_choice(asked: Asked, stamp: Stamp, choice: Choice) -> dict[str, Any]:
    answer = choice.answer
    message: dict[str, Any] = {
        "role": "assistant",
        # With `auto` vLLM has no content beside bare calls; when it was made to call, an empty one.
        "content": answer.content or (None if answer.calls and not asked.must_call else ""),
        "refusal": None,
        "annotations": None,
        "audio": None,
        "function_call": None,
    }
    if answer.calls:
        message["tool_calls"] = [call_shape(call) for call in answer.calls]
    message["reasoning"] = None
    logprobs = None
    if asked.logprobs is not None:
        logprobs = chat_logprobs(stamp.weights, answer.pieces, 0, asked.logprobs)
    return {
        "index": choice.index,
        "message": message,
        "logprobs": logprobs,
        "finish_reason": finish_of(asked, choice),
        "stop_reason": answer.stop_reason,
        "token_ids": answer.ids if asked.return_token_ids else None,
        "routed_experts": None,
    }


def completion_choice(asked: Asked, stamp: Stamp, choice: Choice) -> dict[str, Any]:
    answer = choice.answer
    logprobs = None
    if asked.logprobs is not None:
        logprobs = completion_logprobs(stamp.weights, answer.pieces, 0, 0, asked.logprobs)
    return {
        "index": choice.index,
        "text": answer.text,
        "logprobs": logprobs,
        "finish_reason": answer.finish,
        "stop_reason": answer.stop_reason,
        "token_ids": answer.ids if asked.return_token_ids else None,
        "prompt_logprobs": None,
        "prompt_token_ids": choice.prompt.ids if asked.return_token_ids else None,
        "routed_experts": None,
    }


def call_id() -> str:
    return f"chatcmpl-tool-{secrets.token_hex(8)}"


def call_shape(call: Call) -> dict[str, Any]:
    function = {"name": call.name, "arguments": call.arguments}
    return {"id": call_id(), "type": "function", "function": function}


def finish_of(asked: Asked, choice: Choice) -> str:
    """`tool_calls` for calls of the model's own choosing; for a named tool vLLM says `stop`."""
    called = choice.answer.calls and not isinstance(asked.tool_choice, dict)
    return "tool_calls" if called else choice.answer.finish

"""Streamed answers: a server-sent event for each token, in vLLM's shape."""

import json
from collections.abc import Iterator
from typing import Any

from seatrial.serving.stub.answers.deltas import CallBegins, CallGoesOn, Delta, Words, deltas
from seatrial.serving.stub.http.asked import Asked
from seatrial.serving.stub.http.logprob_shapes import chat_logprobs, completion_logprobs
from seatrial.serving.stub.http.shapes import FINGERPRINT, Stamp, call_id, finish_of
from seatrial.serving.stub.http.work import Choice

DONE = b"data: [DONE]\n\n"


def event(body: dict[str, Any]) -> bytes:
    return b"data: " + json.dumps(body).encode() + b"\n\n"


class Chunks:
    """The events of one choice, as its tokens come."""

    def __init__(self, asked: Asked, stamp: Stamp, choice: Choice) -> None:
        self._asked = asked
        self._stamp = stamp
        self._choice = choice
        self._deltas = deltas(choice.answer)
        self._sent = 0
        self._offset = 0

    def opening(self) -> Iterator[dict[str, Any]]:
        """What a chat says before its first token."""
        if self._asked.chat:
            delta = {"role": "assistant", "content": ""}
            choice = {"index": self._choice.index, "delta": delta, "logprobs": None, "finish_reason": None}
            ids = self._choice.prompt.ids if self._asked.return_token_ids else None
            yield self._body(choice, 0) | {"prompt_token_ids": ids, "prompt_text": None}

    def next(self, tokens: int) -> Iterator[dict[str, Any]]:
        """The events of the next `tokens` tokens."""
        shape = self._chat if self._asked.chat else self._completion
        for number in range(self._sent, self._sent + tokens):
            if choice := shape(number):
                yield self._closed(self._body(choice, number + 1), number)
        self._sent += tokens

    def _last(self, number: int) -> bool:
        return number == len(self._choice.answer.ids) - 1

    def _closed(self, body: dict[str, Any], number: int) -> dict[str, Any]:
        # With a usage chunk to come, that one is the last and carries the fingerprint.
        if self._last(number) and not self._asked.include_usage:
            body["system_fingerprint"] = FINGERPRINT
        return body

    def _chat(self, number: int) -> dict[str, Any] | None:
        answer, last = self._choice.answer, self._last(number)
        delta = delta_shape(self._deltas[number])
        if delta is None and not last and self._asked.logprobs is None and not self._asked.return_token_ids:
            return None
        logprobs = None
        if self._asked.logprobs is not None:
            piece = answer.pieces[number : number + 1]
            logprobs = chat_logprobs(self._stamp.weights, piece, number, self._asked.logprobs)
        choice: dict[str, Any] = {"index": self._choice.index, "delta": delta or {}, "logprobs": logprobs}
        choice["finish_reason"] = finish_of(self._asked, self._choice) if last else None
        if last:
            choice["stop_reason"] = answer.stop_reason
        choice["token_ids"] = [answer.ids[number]] if self._asked.return_token_ids else None
        return choice

    def _completion(self, number: int) -> dict[str, Any]:
        answer, last = self._choice.answer, self._last(number)
        delta = self._deltas[number]
        logprobs = None
        if self._asked.logprobs is not None:
            piece = answer.pieces[number : number + 1]
            weights = self._stamp.weights
            logprobs = completion_logprobs(weights, piece, number, self._offset, self._asked.logprobs)
            self._offset += len(piece[0])
        return {
            "index": self._choice.index,
            "text": delta.text if isinstance(delta, Words) else "",
            "logprobs": logprobs,
            "finish_reason": answer.finish if last else None,
            "stop_reason": answer.stop_reason if last else None,
            "prompt_token_ids": self._choice.prompt.ids
            if self._asked.return_token_ids and not number
            else None,
            "token_ids": [answer.ids[number]] if self._asked.return_token_ids else None,
        }

    def _body(self, choice: dict[str, Any], tokens: int) -> dict[str, Any]:
        body = envelope(self._asked, self._stamp, [choice])
        if self._asked.continuous_usage:
            prompt = len(self._choice.prompt.ids)
            body["usage"] = {
                "prompt_tokens": prompt,
                "total_tokens": prompt + tokens,
                "completion_tokens": tokens,
            }
        return body


def usage_chunk(asked: Asked, stamp: Stamp, usage: dict[str, Any]) -> dict[str, Any]:
    return envelope(asked, stamp, []) | {"usage": usage, "system_fingerprint": FINGERPRINT}


def envelope(asked: Asked, stamp: Stamp, choices: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "id": stamp.id,
        "object": "chat.completion.chunk" if asked.chat else "text_completion",
        "created": stamp.created,
        "model": stamp.model,
        "choices": choices,
    }


def delta_shape(delta: Delta) -> dict[str, Any] | None:
    if isinstance(delta, Words):
        return {"content": delta.text}
    if isinstance(delta, CallBegins):
        begun = {"id": call_id(), "type": "function", "index": delta.index, "function": {"name": delta.name}}
        return {"content": None, "tool_calls": [begun]}
    if isinstance(delta, CallGoesOn):
        more = {"index": delta.index, "function": {"arguments": delta.arguments}}
        return {"content": None, "tool_calls": [more]}
    return None

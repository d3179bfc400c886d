"""The work a request makes: one choice for each answer it wants, and the usage they add up to."""

from dataclasses import dataclass
from typing import Any

from seatrial.serving.stub.answers.answer import Answer, cut
from seatrial.serving.stub.answers.reply import Reply, babble, seed_of
from seatrial.serving.stub.answers.script import Script, last_asked, turn_of
from seatrial.serving.stub.answers.tools import made_up_call
from seatrial.serving.stub.core.sequence import Sequence
from seatrial.serving.stub.http.asked import Asked, Prompt
from seatrial.serving.stub.http.models import Models
from seatrial.serving.stub.settings import Settings

UNLIMITED_LENGTH = 16
"""Tokens of a made-up answer when the client sets no limit."""


@dataclass(frozen=True, slots=True)
class Choice:
    index: int
    prompt: Prompt
    answer: Answer
    sequence: Sequence


def choices_of(asked: Asked, models: Models, script: Script, settings: Settings) -> list[Choice]:
    made: list[Choice] = []
    # Not the served name: all names of the base model are the same weights.
    weights = "\0".join(asked.adapter) if asked.adapter else models.root
    for prompt in asked.prompts:
        limit = asked.limit(prompt, models.max_model_len, settings.max_new_tokens)
        open_ended = asked.max_tokens is None and settings.max_new_tokens is None
        length = min(limit, UNLIMITED_LENGTH - 1) if open_ended else limit
        seed = seed_of(weights, prompt.seed)
        for number in range(asked.choices):
            answer = cut(
                reply_to(asked, prompt, script, seed + number, length),
                limit,
                stops=asked.stops,
                include_stop=asked.include_stop,
                find_calls=asked.may_call,
            )
            sequence = Sequence.of(prompt.ids, answer.ids, settings.block_size, asked.adapter, asked.priority)
            made.append(Choice(len(made), prompt, answer, sequence))
    return made


def reply_to(asked: Asked, prompt: Prompt, script: Script, seed: int, length: int) -> Reply:
    if asked.chat:
        reply = script.reply(asked.model, last_asked(asked.messages), turn_of(asked.messages))
    else:
        reply = script.reply(asked.model, prompt.text)
    if asked.must_call:
        name = asked.tool_choice["function"]["name"] if isinstance(asked.tool_choice, dict) else None
        if reply is None or not reply.calls or (name and name != reply.calls[0].name):
            return Reply(calls=(made_up_call(asked.tools, name, seed),))
    return reply or babble(seed, length)


def usage_of(asked: Asked, choices: list[Choice], settings: Settings, *, whole: bool) -> dict[str, Any]:
    """What was read and written so far; `whole` with all of vLLM's fields, else only those it streams."""
    prompt_tokens = sum(len(prompt.ids) for prompt in asked.prompts)
    completion_tokens = sum(choice.sequence.produced for choice in choices)
    usage: dict[str, Any] = {
        "prompt_tokens": prompt_tokens,
        "total_tokens": prompt_tokens + completion_tokens,
        "completion_tokens": completion_tokens,
    }
    if settings.prompt_tokens_details:
        last = choices[-asked.choices]
        details: dict[str, Any] = {"cached_tokens": last.sequence.cached}
        if asked.chat:
            full = len(last.prompt.ids) // settings.block_size * settings.block_size
            details["created_cache_tokens"] = max(full - last.sequence.cached, 0)
        elif whole:
            details["created_cache_tokens"] = None
        if whole:
            details["multimodal_tokens"] = None
        usage["prompt_tokens_details"] = details
    elif whole:
        usage["prompt_tokens_details"] = None
    if whole:
        usage["completion_tokens_details"] = None
    return usage

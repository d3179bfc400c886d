"""What a client asks for, with what it left open filled in."""

from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from seatrial.serving.stub.answers.chat import Message
from seatrial.serving.stub.answers.tokens import tokenize
from seatrial.serving.stub.core.prefix_cache import Adapter
from seatrial.serving.stub.http.refusals import Refused, bad_value

Body = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Prompt:
    text: str
    ids: list[int]

    @classmethod
    def of_text(cls, text: str) -> "Prompt":
        return cls(text, tokenize(text))

    @classmethod
    def of_ids(cls, ids: list[int]) -> "Prompt":
        for token in ids:
            if not 0 <= token < 1 << 31:
                raise Refused(f"Token id {token} is out of vocabulary")
        return cls("", ids)

    @property
    def seed(self) -> bytes:
        return self.text.encode("utf-8", "surrogatepass") or array("q", self.ids).tobytes()


@dataclass(frozen=True, slots=True)
class Asked:
    chat: bool
    model: str
    """The name to answer under."""
    adapter: Adapter | None
    prompts: list[Prompt]
    choices: int
    """Answers for each prompt."""
    max_tokens: int | None
    stops: tuple[str, ...]
    include_stop: bool
    stream: bool
    include_usage: bool
    continuous_usage: bool
    logprobs: int | None
    """How many alternatives a token; None for no log probabilities at all."""
    return_token_ids: bool
    priority: int
    messages: list[Message] = field(default_factory=list)
    tools: Sequence[Body] = ()
    tool_choice: str | Body = "none"

    @property
    def must_call(self) -> bool:
        return self.tool_choice == "required" or isinstance(self.tool_choice, dict)

    @property
    def may_call(self) -> bool:
        return self.tool_choice != "none"

    def limit(self, prompt: Prompt, max_model_len: int, cap: int | None) -> int:
        """The most tokens an answer to `prompt` may have."""
        room = max_model_len - len(prompt.ids)
        if room < 0:
            raise too_long(len(prompt.ids), max_model_len)
        limit = min(x for x in (room, self.max_tokens, cap) if x is not None)
        if limit < 1:
            raise bad_value(f"max_tokens must be at least 1, got {limit}.", "max_tokens", limit)
        return limit


def too_long(tokens: int, max_model_len: int) -> Refused:
    # vLLM stops counting one token past the limit.
    shown = min(tokens, max_model_len + 1)
    return bad_value(
        f"This model's maximum context length is {max_model_len} tokens. However, your prompt contains "
        f"at least {shown} input tokens, which exceeds this limit even without any output tokens. "
        "Please reduce the length of the input prompt.",
        "input_tokens",
        shown,
    )

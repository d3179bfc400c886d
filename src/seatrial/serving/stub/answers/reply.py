"""What the stand-in wants to say, before limits and stop strings: words, tool calls, or both."""

from dataclasses import dataclass
from zlib import crc32

from seatrial.serving.stub.answers.chat import call_text, said


@dataclass(frozen=True, slots=True)
class Call:
    name: str
    arguments: str
    """JSON."""


@dataclass(frozen=True, slots=True)
class Reply:
    content: str = ""
    calls: tuple[Call, ...] = ()

    @property
    def text(self) -> str:
        return said(self.content, [call_text(call.name, call.arguments) for call in self.calls])


SYLLABLES = ("ba", "de", "fi", "go", "hu", "ka", "le", "mi", "no", "pu", "ra", "se", "ti", "vo", "wu", "za")
WORDS = tuple(f" {first}{second}" for first in SYLLABLES for second in SYLLABLES)
"""256 words of one token each."""


def seed_of(model: str, prompt: bytes) -> int:
    return crc32(prompt, crc32(model.encode()))


def babble(seed: int, tokens: int) -> Reply:
    """Words that depend on the seed only, one token each."""
    words = []
    for _ in range(tokens):
        seed = (seed * 1103515245 + 12345) & 0x7FFFFFFF
        words.append(WORDS[seed >> 16 & 255])
    return Reply("".join(words))

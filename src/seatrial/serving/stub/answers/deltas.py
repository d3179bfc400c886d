"""A streamed answer: what each of its tokens adds to the message."""

from collections.abc import Iterator
from dataclasses import dataclass

from seatrial.serving.stub.answers.answer import Answer
from seatrial.serving.stub.answers.chat import CALL_TAIL, call_head
from seatrial.serving.stub.answers.tokens import pieces


@dataclass(frozen=True, slots=True)
class Words:
    text: str


@dataclass(frozen=True, slots=True)
class CallBegins:
    index: int
    name: str


@dataclass(frozen=True, slots=True)
class CallGoesOn:
    index: int
    arguments: str


Delta = Words | CallBegins | CallGoesOn | None
"""What a token adds to the message; None for one that only marks structure."""


def deltas(answer: Answer) -> list[Delta]:
    """One for each token."""
    found = list(_call_deltas(answer) if answer.calls else _word_deltas(answer))
    tokens = len(answer.pieces)
    return (found + [None] * (tokens - len(found)))[:tokens]


def _word_deltas(answer: Answer) -> Iterator[Delta]:
    left = len(answer.text)
    for piece in answer.pieces:
        shown = piece[:left]
        left -= len(shown)
        yield Words(shown) if shown else None


def _call_deltas(answer: Answer) -> Iterator[Delta]:
    for piece in pieces(answer.content):
        yield Words(piece)
    for index, call in enumerate(answer.calls):
        lead = "\n" if index or answer.content else ""
        yield from [None] * (len(pieces(lead + call_head(call.name))) - 1)
        yield CallBegins(index, call.name)
        for piece in pieces(call.arguments):
            yield CallGoesOn(index, piece)
        yield from [None] * len(pieces(CALL_TAIL))

"""An answer token by token: a reply, cut by the token limit and by stop strings, with its tool calls found."""

from collections.abc import Sequence
from dataclasses import dataclass

from seatrial.serving.stub.answers.chat import END
from seatrial.serving.stub.answers.reply import Call, Reply
from seatrial.serving.stub.answers.tokens import pieces, token_ids


@dataclass(frozen=True, slots=True)
class Answer:
    pieces: list[str]
    """The text of each token; that of the closing one is empty."""
    ids: list[int]
    text: str
    """What the client sees of it."""
    finish: str
    """`stop` or `length`."""
    stop_reason: str | None = None
    content: str = ""
    calls: tuple[Call, ...] = ()
    """Empty as well when the calls were not asked for or cut short: then they are part of the text."""


def cut(
    reply: Reply,
    limit: int,
    *,
    stops: Sequence[str] = (),
    include_stop: bool = False,
    find_calls: bool = False,
) -> Answer:
    text = reply.text
    parts = pieces(text)
    if len(parts) < limit:
        closing, finish = [""], "stop"
    else:
        closing, finish = [], "length"
        parts = parts[:limit]
        text = "".join(parts)
    if stops and (stopped := first_stop(text, stops)):
        begins, stop = stopped
        parts = parts[: covering(parts, begins + len(stop))]
        seen = text[: begins + len(stop)] if include_stop else text[:begins]
        return Answer(parts, token_ids(parts), seen, "stop", stop, seen)
    # The closing token is the one that ends the message in the template, as with real models.
    ids = token_ids(parts + [END] * len(closing))
    if find_calls and reply.calls and finish == "stop":
        return Answer(parts + closing, ids, text, finish, None, reply.content, reply.calls)
    return Answer(parts + closing, ids, text, finish, None, text)


def first_stop(text: str, stops: Sequence[str]) -> tuple[int, str] | None:
    """Where the stop string begins that is complete first."""
    found = [(at + len(stop), at, stop) for stop in stops if stop and (at := text.find(stop)) >= 0]
    return min(found)[1:] if found else None


def covering(parts: Sequence[str], end: int) -> int:
    """How many pieces it takes to reach `end`."""
    reached = 0
    for count, piece in enumerate(parts, 1):
        reached += len(piece)
        if reached >= end:
            return count
    return len(parts)

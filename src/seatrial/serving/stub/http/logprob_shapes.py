"""Log probabilities in the two shapes of the API: of chat and of completions."""

from collections.abc import Sequence
from typing import Any

from seatrial.serving.stub.answers.logprobs import top_logprobs


def chat_logprobs(model: str, pieces: Sequence[str], first: int, count: int) -> dict[str, Any]:
    """For `pieces`, of which the first is token number `first` of the answer."""
    content = []
    for position, piece in enumerate(pieces, first):
        ranked = top_logprobs(model, position, piece, count)
        entry = chat_entry(*ranked[0])
        entry["top_logprobs"] = [chat_entry(*alternative) for alternative in ranked[:count]]
        content.append(entry)
    return {"content": content}


def chat_entry(piece: str, logprob: float) -> dict[str, Any]:
    return {"token": piece, "logprob": logprob, "bytes": list(piece.encode("utf-8", "replace"))}


def completion_logprobs(
    model: str, pieces: Sequence[str], first: int, offset: int, count: int
) -> dict[str, Any]:
    """For `pieces`, which begin at token `first` and character `offset` of the answer."""
    offsets: list[int] = []
    ranked = []
    for position, piece in enumerate(pieces, first):
        offsets.append(offset)
        offset += len(piece)
        ranked.append(top_logprobs(model, position, piece, count))
    return {
        "text_offset": offsets,
        "token_logprobs": [alternatives[0][1] for alternatives in ranked],
        "tokens": list(pieces),
        "top_logprobs": [dict(alternatives) for alternatives in ranked],
    }

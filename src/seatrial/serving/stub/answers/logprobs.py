"""Log probabilities that depend on the model, the token and its place, and on nothing else."""

from zlib import crc32

from seatrial.serving.stub.answers.reply import WORDS


def top_logprobs(model: str, position: int, piece: str, count: int) -> list[tuple[str, float]]:
    """The chosen token first, then less likely ones, `count` in all and at least the chosen one."""
    draw = crc32(f"{model}\0{position}\0{piece}".encode("utf-8", "surrogatepass"))
    logprob = -(1 + draw % 2000) / 1000
    ranked = [(piece, logprob)]
    for rank in range(1, count + 1):
        if len(ranked) >= count:
            break
        other = WORDS[(draw + rank) % len(WORDS)]
        if other != piece:
            ranked.append((other, logprob - rank * 0.5))
    return ranked

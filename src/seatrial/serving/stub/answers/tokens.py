"""Text to token ids, without a vocabulary: the same text gives the same ids in every process.

A piece is matched without looking past its own end, so cutting a text at the end of a piece cuts its tokens
there too. This is what makes a conversation's next prompt start with the tokens of the last one.
"""

import re
from collections.abc import Sequence
from zlib import crc32

PIECE = re.compile(r"<\|\w+\|>| ?\w{1,5}|[^\w]")
REMEMBERED = 200_000


class _Ids(dict[str, int]):
    def __missing__(self, piece: str) -> int:
        if len(self) >= REMEMBERED:
            self.clear()
        token = self[piece] = crc32(piece.encode("utf-8", "surrogatepass")) & 0x7FFFFFFF
        return token


_ids = _Ids()


def pieces(text: str) -> list[str]:
    return PIECE.findall(text)


def token_ids(parts: Sequence[str]) -> list[int]:
    """The ids of pieces."""
    ids = _ids
    return [ids[piece] for piece in parts]


def tokenize(text: str) -> list[int]:
    return token_ids(PIECE.findall(text))

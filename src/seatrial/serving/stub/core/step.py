"""A step of the engine: what each sequence computes in it, and what it has gained when it ends."""

from dataclasses import dataclass
from typing import NamedTuple

from seatrial.serving.stub.core.sequence import Sequence


class Share(NamedTuple):
    """A sequence's part of a step."""

    compute: int
    gain: int
    prefill: int


@dataclass(frozen=True, slots=True)
class Step:
    began: float
    seconds: float
    shares: dict[Sequence, Share]

    @property
    def ends(self) -> float:
        return self.began + self.seconds


class Gain(NamedTuple):
    """Tokens a sequence has when a step ends that it did not have before."""

    sequence: Sequence
    tokens: int
    waited: float
    """Seconds since its last token, or since its arrival when these are its first."""
    first: bool
    done: bool

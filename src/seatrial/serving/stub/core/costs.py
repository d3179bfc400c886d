"""What a step of the engine costs in time. All zero means: as fast as the machine goes."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Costs:
    step: float = 0.0
    """Seconds a step takes whatever is in it: reading the weights."""
    prefill_token: float = 0.0
    """Seconds for each token of a prompt that is not in the cache."""
    sequence: float = 0.0
    """Seconds for each sequence in the step."""
    context_token: float = 0.0
    """Seconds for each token that attention reads, over all sequences in the step."""

    @property
    def none(self) -> bool:
        return not (self.step or self.prefill_token or self.sequence or self.context_token)

    def seconds(self, *, prefill_tokens: int, sequences: int, context_tokens: int) -> float:
        return (
            self.step
            + self.prefill_token * prefill_tokens
            + self.sequence * sequences
            + self.context_token * context_tokens
        )

"""One sequence in the engine: its prompt, the answer it will give, and how far it has come."""

from collections.abc import Sequence as Tokens
from dataclasses import dataclass, field

from seatrial.serving.stub.core.prefix_cache import Adapter, block_hashes


@dataclass(slots=True, eq=False)
class Sequence:
    prompt_tokens: int
    output_tokens: int
    """How many tokens it will generate; the stand-in knows its answer from the start."""
    hashes: list[int]
    """Of the full blocks of prompt and answer together."""
    adapter: Adapter | None = None
    priority: int = 0
    """Lower goes first, under the policy `priority`."""

    number: int = -1
    """Order of arrival, given by the batch."""
    computed: int = 0
    """Tokens whose keys and values are in the cache."""
    produced: int = 0
    cached: int = 0
    """Prompt tokens found in the cache when it was first admitted."""
    held: int = 0
    """Blocks held, of which those in `shared` are findable by others."""
    shared: list[int] = field(default_factory=list)
    sealed: int = 0
    """Full blocks already offered to the cache."""
    preemptions: int = 0

    arrived: float = 0.0
    admitted: float = -1.0
    """When it was first admitted; before that, less than its arrival."""
    first_token: float = 0.0
    last_token: float = 0.0

    @classmethod
    def of(
        cls,
        prompt: Tokens[int],
        output: Tokens[int],
        block_size: int,
        adapter: Adapter | None = None,
        priority: int = 0,
    ) -> "Sequence":
        assert prompt
        assert output
        hashes = block_hashes([*prompt, *output], block_size, adapter)
        return cls(len(prompt), len(output), hashes, adapter, priority)

    @property
    def known(self) -> int:
        """Tokens that exist so far."""
        return self.prompt_tokens + self.produced

    @property
    def done(self) -> bool:
        return self.produced >= self.output_tokens

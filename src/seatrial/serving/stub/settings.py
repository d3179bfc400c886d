"""How a stand-in is set up: its model's names, its limits, its speed, and what it tolerates."""

from dataclasses import dataclass, field

from seatrial.errors import ConfigError
from seatrial.serving.stub.core.costs import Costs


@dataclass(frozen=True, slots=True)
class Settings:
    host: str = "127.0.0.1"
    port: int = 8000
    """0: any free one."""
    model: str = "stub"
    served_names: tuple[str, ...] = ()
    """The first is the name in answers; empty means the model itself."""
    max_model_len: int = 4096
    block_size: int = 16
    num_gpu_blocks: int = 8192
    max_num_seqs: int = 256
    max_num_batched_tokens: int = 8192
    max_loras: int = 1
    max_lora_rank: int = 16
    lora_modules: tuple[tuple[str, str], ...] = ()
    max_new_tokens: int | None = None
    """A cap on every answer, from `--override-generation-config`."""
    by_priority: bool = False
    costs: Costs = field(default_factory=Costs)
    script: str | None = None
    startup_seconds: float = 0.0
    fail_start: str | None = None
    api_keys: tuple[str, ...] = ()
    """Any of these opens `/v1`; empty means open to all."""

    # What vLLM has only when asked for. The stand-in by itself has all of it; in place of a `vllm serve` it is
    # as strict as vLLM, or a supervisor that forgets a flag would pass its tests.
    prefix_caching: bool = True
    prompt_tokens_details: bool = True
    auto_tool_choice: bool = True
    runtime_lora: bool = True
    developer: bool = True

    def __post_init__(self) -> None:
        needed = -(-self.max_model_len // self.block_size) + 1
        if self.num_gpu_blocks < needed:
            raise ConfigError(
                f"a request of max_model_len {self.max_model_len} needs {needed} blocks of {self.block_size} tokens, "
                f"and the cache has {self.num_gpu_blocks}",
                cure=f"give at least --num-gpu-blocks {needed}, or a smaller --max-model-len",
            )

    @property
    def names(self) -> tuple[str, ...]:
        return self.served_names or (self.model,)

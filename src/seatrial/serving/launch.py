"""How one engine is started: its exact command line and environment. Pure."""

import json
import os
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from seatrial.config.serve import InferenceParameters, ServeConfig
from seatrial.secrets import masked, masked_words
from seatrial.serving.families import Family

LORA_RANKS = (1, 8, 16, 32, 64, 128, 256, 320, 512)
"""The values that vLLM takes for max_lora_rank."""
DEFAULT_LORA_RANK = 16
QUIET_ENDPOINTS = "/health,/metrics,/v1/models"
"""Asked for every few seconds by the supervisor and by samplers: their access lines would drown the rest."""


@dataclass(frozen=True)
class Launch:
    """A command with what it needs of its environment."""

    argv: list[str]
    environment: dict[str, str]
    """Only what is set for the engine beyond what it inherits."""
    clean: list[str] = field(default_factory=list)
    """A command that removes what an ended engine may leave behind, such as its container."""

    def shown(self) -> str:
        """As one would type it; secrets hidden."""
        variables = [f"{name}={shlex.quote(value)}" for name, value in masked(self.environment).items()]
        return " ".join([*variables, shlex.join(masked_words(self.argv))])


def engine_arguments(
    config: ServeConfig,
    *,
    family: Family,
    model: str,
    port: int,
    adapters: Mapping[str, str],
    adapter_rank: int | None,
    cpu: bool,
) -> list[str]:
    """The arguments of `vllm serve` for one replica, `model` and `adapters` as the engine will find them."""
    words: list[str] = [model, "--host", config.host, "--port", str(port), "--served-model-name", config.name]
    tools, reasoning = parsers(config, family)
    settings: dict[str, Any] = {
        "max_model_len": config.max_model_len,
        "quantization": config.quantization,
        "dtype": config.dtype,
        "gpu_memory_utilization": config.gpu_memory_utilization,
        "tensor_parallel_size": config.tensor_parallel_size if config.tensor_parallel_size > 1 else None,
        "max_num_seqs": config.max_num_seqs,
        "enable_prefix_caching": config.enable_prefix_caching,
        "enforce_eager": (cpu if config.enforce_eager is None else config.enforce_eager) or None,
        "kv_offloading_size": config.kv_offload_gib,
        "kv_offloading_backend": "native" if config.kv_offload_gib else None,
        "scheduling_policy": config.scheduling_policy,
        "trust_remote_code": config.trust_remote_code or None,
        "enable_prompt_tokens_details": True,
        "enable_auto_tool_choice": True if tools else None,
        "tool_call_parser": tools,
        "reasoning_parser": reasoning,
        "override_generation_config": generation_config(config.inference_parameters),
        "disable_access_log_for_endpoints": QUIET_ENDPOINTS,
    }
    if config.lora:
        settings |= {
            "enable_lora": True,
            "max_loras": config.max_loras or max(2, len(adapters)),
            "max_lora_rank": lora_rank(config, adapter_rank),
            # One flag with all of them: given again, it would replace what came before.
            "lora_modules": [f"{name}={path}" for name, path in adapters.items()] or None,
        }
    for name, value in {**settings, **config.extra_args}.items():
        words += as_flag(name, value)
    return words


def engine_environment(
    config: ServeConfig, *, gpus: Sequence[str], cpu: bool, cpu_kv_gib: int, python_path: str
) -> dict[str, str]:
    """The variables an engine gets beyond the user's own."""
    variables = {"PYTHONUNBUFFERED": "1", "VLLM_NO_USAGE_STATS": "1", "DO_NOT_TRACK": "1"}
    if config.lora:
        variables["VLLM_ALLOW_RUNTIME_LORA_UPDATING"] = "True"
    variables |= config.environment
    if cpu:
        variables.setdefault("VLLM_CPU_KVCACHE_SPACE", str(config.cpu_kv_cache_gib or cpu_kv_gib))
        # Where our plugin is found, which keeps adapters out of the base's answers on a CPU.
        path = [python_path, config.environment.get("PYTHONPATH", "")]
        if any(path):
            variables["PYTHONPATH"] = os.pathsep.join(filter(None, path))
    elif gpus:
        variables.setdefault("CUDA_VISIBLE_DEVICES", ",".join(gpus))
    return variables


def parsers(config: ServeConfig, family: Family) -> tuple[str | None, str | None]:
    """The tool-call and reasoning parsers: as configured, else by family; `none` is none."""
    tools = config.tool_call_parser or family.tool_call_parser
    reasoning = config.reasoning_parser or family.reasoning_parser
    return (None if tools == "none" else tools), (None if reasoning == "none" else reasoning)


def lora_rank(config: ServeConfig, adapter_rank: int | None) -> int:
    """The limit to serve with: as configured, else the largest rank given, rounded up to what vLLM takes.

    Larger than needed costs speed on every request.
    """
    wanted = config.max_lora_rank or adapter_rank or DEFAULT_LORA_RANK
    return next((rank for rank in LORA_RANKS if rank >= wanted), wanted)


def generation_config(parameters: InferenceParameters) -> dict[str, Any] | None:
    values = parameters.model_dump(exclude_none=True)
    if "max_tokens" in values:
        values["max_new_tokens"] = values.pop("max_tokens")
    return values or None


def as_flag(name: str, value: Any) -> list[str]:
    """One argument of vLLM: None is left out, true and false are the flag and its `--no-` form."""
    flag = "--" + name.lstrip("-").replace("_", "-")
    match value:
        case None:
            return []
        case True:
            return [flag]
        case False:
            return [flag.replace("--", "--no-", 1)]
        case dict():
            return [flag, json.dumps(value)]
        case list():
            return [flag, *(json.dumps(v) if isinstance(v, dict) else str(v) for v in value)]
        case _:
            return [flag, str(value)]

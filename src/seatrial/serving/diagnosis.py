"""What an engine's log says: how far the start has come, and, when it died, why and what cures it. Pure."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

PHASES: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("ready", re.compile(r"Application startup complete")),
    (
        "capturing graphs",
        re.compile(r"Capturing CUDA graph|Graph capturing|torch\.compile took|Compiling a graph"),
    ),
    (
        "profiling memory",
        re.compile(
            r"Available KV cache memory|GPU KV cache size|Memory profiling|CPU KV cache|Warming up model"
        ),
    ),
    (
        "loading weights",
        re.compile(r"Starting to load model|Loading (safetensors|weights|model)", re.IGNORECASE),
    ),
    (
        "starting the engine",
        re.compile(r"Initializing a V\d LLM engine|vLLM API server version|non-default args"),
    ),
)
"""A phase and the line that opens it, latest first."""


@dataclass(frozen=True)
class Cause:
    name: str
    sign: re.Pattern[str]
    message: str
    cure: str
    input_fault: bool = False
    """Whether the configuration is at fault (exit 2) rather than the machine (exit 1)."""


CAUSES: tuple[Cause, ...] = (
    Cause(
        "port in use",
        re.compile(r"address already in use", re.IGNORECASE),
        "the port is in use",
        "choose another with --port, or stop what listens there",
        input_fault=True,
    ),
    Cause(
        "adapter rank too large",
        re.compile(r"LoRA rank (\d+) is greater than max_lora_rank\s*(\d+)"),
        "an adapter's rank is larger than max_lora_rank",
        "set max_lora_rank to at least the adapter's rank, or leave it out to have it found",
        input_fault=True,
    ),
    Cause(
        "model not found",
        re.compile(
            r"Repository Not Found|is not a local folder and is not a valid model identifier"
            r"|Can't load the configuration of|does not appear to have a file named config\.json"
            r"|couldn't connect to .* to load|LocalEntryNotFoundError|Cannot find any model weights"
            r"|Invalid repository ID or local directory|Incorrect path_or_model_id"
        ),
        "the model was not found",
        "check model_id: a hub id this machine can reach (with HF_TOKEN for a gated one), or a local directory",
        input_fault=True,
    ),
    Cause(
        "unknown architecture",
        re.compile(
            r"Model architectures? .* (are|is) not supported|does not recognize this architecture"
            r"|has no vLLM implementation|Cannot find model module"
        ),
        "this vLLM does not know the model's architecture",
        "use a newer engine (seatrial setup engine --fresh after raising its pin), or another model",
        input_fault=True,
    ),
    Cause(
        "out of memory",
        re.compile(
            r"out of memory|OutOfMemoryError|No available memory for the cache blocks"
            r"|less than desired GPU memory utilization|larger than the (available|maximum number of tokens)"
            r"|KV cache is needed, which is larger|Cannot allocate memory|not enough memory|std::bad_alloc",
            re.IGNORECASE,
        ),
        "the memory does not suffice",
        "lower max_model_len or max_num_seqs, quantize, raise tensor_parallel_size, or change "
        "gpu_memory_utilization (cpu_kv_cache_gib on a CPU)",
    ),
)

ERROR_LINE = re.compile(
    r"^(?:\(.*?\)\s*)?(?:(?:ERROR|CRITICAL)\b.*?\]\s*)?((?:\w+\.)*\w*(?:Error|Exception)\b.*)$"
)


def phase_of(line: str) -> str | None:
    """The phase that `line` opens, if it opens one."""
    return next((phase for phase, sign in PHASES if sign.search(line)), None)


def cause_of(lines: Iterable[str]) -> tuple[Cause, str] | None:
    """The known cause of death that the log shows, with the line that shows it."""
    kept = list(lines)
    for cause in CAUSES:
        for line in kept:
            if cause.sign.search(line):
                return cause, line.strip()
    return None


def error_line(lines: Iterable[str]) -> str | None:
    """The engine's own words: the first exception line, since those after it are its echoes."""
    for line in lines:
        if match := ERROR_LINE.match(line.strip()):
            return match.group(1)
    return None

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
    ("fetching the image", re.compile(r"Unable to find image '.*' locally")),
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


START_DOCKER = (
    "start it (systemctl start docker), join the group docker, or set DOCKER_HOST to where it listens"
)

CAUSES: tuple[Cause, ...] = (
    Cause(
        "port in use",
        re.compile(r"address already in use|port is already allocated", re.IGNORECASE),
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
            r"|couldn't connect to .* to load|LocalEntryNotFoundError: |Cannot find any model weights"
            r"|Invalid repository ID or local directory|Incorrect path_or_model_id"
            r"|gated repo|GatedRepoError|401 Client Error"
        ),
        "the model was not found",
        "check model_id: a hub id this machine can reach (with HF_TOKEN for a gated one), or a local directory",
        input_fault=True,
    ),
    Cause(
        "no vLLM",
        re.compile(r"No module named '?vllm"),
        "the engine's interpreter cannot import vLLM",
        "seatrial setup engine, or give engine.python an interpreter that has it",
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
        "context too long",
        re.compile(r"max_model_len \(\d+\) is greater than the derived max_model_len"),
        "max_model_len is more than the model was made for",
        "lower max_model_len, or leave it out",
        input_fault=True,
    ),
    Cause(
        "unknown argument",
        re.compile(r"error: unrecognized arguments|error: argument --?\S+: "),
        "vLLM does not take an argument it was given",
        "check extra_args: keys are vLLM's own flags, with underscores or dashes",
        input_fault=True,
    ),
    Cause(
        "out of memory",
        re.compile(
            r"out of memory|OutOfMemoryError|No available memory for the cache blocks"
            r"|less than desired GPU memory utilization|larger than the (available|maximum number of tokens)"
            r"|KV cache is needed, which is larger|less than requested memory for kv"
            r"|Cannot allocate memory|not enough memory|std::bad_alloc",
            re.IGNORECASE,
        ),
        "the memory does not suffice",
        "lower max_model_len or max_num_seqs, quantize, raise tensor_parallel_size, or change "
        "gpu_memory_utilization (cpu_kv_cache_gib on a CPU)",
    ),
    Cause(
        "no Docker engine",
        re.compile(
            r"Cannot connect to the Docker daemon|trying to connect to the docker (daemon|API)", re.IGNORECASE
        ),
        "no Docker engine answers",
        START_DOCKER,
    ),
    Cause(
        "image not found",
        re.compile(
            r"(pull access|requested access to the resource is) denied|unauthorized: |No such image"
            r"|manifest( for .*)? (unknown|not found)|failed to resolve reference .*: not found"
            r"|invalid reference format"
        ),
        "the image was not found",
        "check docker.image, docker login for a private one, or docker build or docker load it here first",
        input_fault=True,
    ),
    Cause(
        "registry out of reach",
        re.compile(
            r"Error response from daemon: (Get|Head) |failed to (do request|resolve reference)|error pulling image"
        ),
        "the image is not on this machine and its registry could not be reached",
        "docker pull it where there is a network, docker save and docker load it here, and set docker.image",
    ),
    Cause(
        "no GPUs in containers",
        re.compile(
            r"could not select device driver|unknown or invalid runtime name: nvidia|nvidia-container-cli"
        ),
        "Docker has no NVIDIA runtime, so a container gets no GPU",
        "install nvidia-container-toolkit, run nvidia-ctk runtime configure --runtime=docker and restart "
        "Docker, or set engine.device: cpu with an image for it",
    ),
    Cause(
        "no such command in the image",
        re.compile(r"exec: .*(executable file not found|no such file)|FATAL tini .*exec .* failed"),
        "the image has no such command",
        "set docker.entrypoint to the command of this image that takes vllm serve's arguments",
        input_fault=True,
    ),
)

LOG_PREFIX = re.compile(
    r"^(?:docker: )?(?:\([^)]*pid=\d+\)\s*)?(?:(?:ERROR|CRITICAL|WARNING|INFO)\b[^\]]*\]\s*)?"
)
"""What vLLM puts before a message: the process, the level, the time and the place."""
ERROR_LINE = re.compile(r"(?:\w+\.)*\w*(?:Error|Exception)\b|Value error, |\S+: error: ")
HEADING = re.compile(r"validation errors? for \w+$")
"""The first line of a pydantic error, which only says that another one follows."""
LONGEST = 300


def phase_of(line: str) -> str | None:
    """The phase that `line` opens, if it opens one."""
    return next((phase for phase, sign in PHASES if sign.search(line)), None)


def cause_of(lines: Iterable[str]) -> tuple[Cause, str] | None:
    """The known cause of death that the log shows, with the line that shows it."""
    kept = list(lines)
    for cause in CAUSES:
        for line in kept:
            if cause.sign.search(line):
                return cause, plain(line)
    return None


def error_line(lines: Iterable[str]) -> str | None:
    """The engine's own words: the first exception line, since those after it are its echoes."""
    for line in map(plain, lines):
        if ERROR_LINE.match(line) and not HEADING.search(line):
            return line
    return None


def plain(line: str) -> str:
    """A line without vLLM's prefix, cut to what fits a message."""
    text = LOG_PREFIX.sub("", line.strip()).strip()
    return text if len(text) <= LONGEST else text[:LONGEST] + "..."

import pytest

from seatrial.serving.diagnosis import cause_of, error_line, phase_of, plain


@pytest.mark.parametrize(
    ("line", "phase"),
    [
        (
            "(EngineCore pid=1) INFO 11-15 [core.py:133] Initializing a V1 LLM engine (v0.32.0)",
            "starting the engine",
        ),
        ("(EngineCore pid=1) INFO [gpu_model_runner.py:1] Starting to load model tiny...", "loading weights"),
        ("INFO [core.py:2] GPU KV cache size: 62,432 tokens", "profiling memory"),
        ("(APIServer pid=1) INFO:     Application startup complete.", "ready"),
        ("INFO: something else", None),
    ],
)
def test_lines_tell_how_far_the_start_has_come(line: str, phase: str | None) -> None:
    assert phase_of(line) == phase


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB", "out of memory"),
        ("ValueError: No available memory for the cache blocks. Try increasing", "out of memory"),
        (
            "ValueError: Available memory on node 0 (13.19/14.71 GiB) on kv cache allocation is less than requested"
            " memory for kv (900.0 GiB).",
            "out of memory",
        ),
        (
            "  Value error, User-specified max_model_len (100000) is greater than the derived max_model_len (x)",
            "context too long",
        ),
        ("main.py: error: unrecognized arguments: --no-such-flag 3", "unknown argument"),
        (
            "ValueError: ... Transformers does not recognize this architecture. This could be",
            "unknown architecture",
        ),
        ("OSError: [Errno 98] Address already in use", "port in use"),
        ("OSError: nope is not a local folder and is not a valid model identifier", "model not found"),
        ("ValueError: Model architectures ['Foo'] are not supported for now.", "unknown architecture"),
        ("ValueError: LoRA rank 64 is greater than max_lora_rank 16.", "adapter rank too large"),
        (
            "docker: Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is it running?",
            "no Docker engine",
        ),
        (
            "docker: permission denied while trying to connect to the Docker daemon socket at unix:///var/run",
            "no Docker engine",
        ),
        (
            "docker: Error response from daemon: pull access denied for nope, repository does not exist or may"
            " require 'docker login'",
            "image not found",
        ),
        (
            "docker: Error response from daemon: manifest for vllm/vllm-openai:v9 not found: manifest unknown",
            "image not found",
        ),
        (
            'docker: Error response from daemon: failed to resolve reference "registry.example/library/nope:1":'
            " registry.example/library/nope:1: not found",
            "image not found",
        ),
        (
            'docker: Error response from daemon: Get "https://registry.example/v2/": dial tcp: lookup'
            " registry.example: no such host",
            "registry out of reach",
        ),
        (
            'docker: Error response from daemon: could not select device driver "" with capabilities: [[gpu]].',
            "no GPUs in containers",
        ),
        (
            'exec: "vllm": executable file not found in $PATH: unknown.',
            "no such command in the image",
        ),
        ("[FATAL tini (7)] exec vllm failed: No such file or directory", "no such command in the image"),
    ],
)
def test_known_causes_of_death_are_recognised(line: str, name: str) -> None:
    found = cause_of(["INFO: fine", line, "INFO: later"])
    assert found is not None
    assert found[0].name == name
    assert found[0].cure


def test_a_log_without_a_known_cause_gives_none() -> None:
    assert cause_of(["INFO: fine", "RuntimeError: something new"]) is None


def test_dockers_own_error_is_its_words() -> None:
    lines = [
        "Unable to find image 'nope' locally",
        "docker: Error response from daemon: invalid mount config",
    ]
    assert error_line(lines) == "Error response from daemon: invalid mount config"


def test_the_first_exception_line_is_the_engines_own_words() -> None:
    lines = [
        "(EngineCore pid=9) ERROR 11-15 03:00:00 [core.py:900] Traceback (most recent call last):",
        "(EngineCore pid=9) ERROR 11-15 03:00:00 [core.py:900] ValueError: the real reason",
        "RuntimeError: Engine core initialization failed. See root cause above.",
    ]
    assert error_line(lines) == "ValueError: the real reason"


def test_the_heading_of_a_validation_error_is_not_its_reason() -> None:
    lines = [
        "pydantic_core._pydantic_core.ValidationError: 1 validation error for ModelConfig",
        "  Value error, the real reason [type=value_error]",
    ]
    assert error_line(lines) == "Value error, the real reason [type=value_error]"


def test_long_lines_are_cut() -> None:
    assert len(plain("ValueError: " + "x" * 5000)) < 400

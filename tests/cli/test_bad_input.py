"""What a user can get wrong: one message, exit 2, no traceback, nothing started."""

import json
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from seatrial.serving.adapters.adapter import CONFIG, WEIGHTS
from seatrial.serving.adapters.random import make_random
from seatrial.serving.models.catalog import make_own


def seatrial(*words: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "seatrial", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


def refused(done: subprocess.CompletedProcess[str], words: str) -> None:
    assert done.returncode == 2, done.stderr
    assert done.stderr.count("seatrial: ") == 1
    assert words in done.stderr
    assert "Traceback" not in done.stderr


@pytest.fixture
def config(tmp_path: Path) -> Callable[[str], Path]:
    def write(text: str) -> Path:
        (tmp_path / "config.yaml").write_text(text)
        return tmp_path / "config.yaml"

    return write


@pytest.fixture
def adapter(tmp_path: Path) -> Path:
    return make_random(make_own("tiny", print), tmp_path / "adapter", seed=1)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("model_id: [", "broken YAML"),
        ("model_id: tiny\nreplica: 2", "did you mean 'replicas'?"),
        ("model_id: tiny\ngpu_memory_utilization: -1", "gpu_memory_utilization"),
        ("model_id: ./nothing-here", "no such directory"),
        ("model_id: tiny\nlora_modules: {a: ./no-adapter-here}", "no such adapter directory"),
        ("model_id: tiny\nengine: {python: /no/python}", "no such interpreter"),
    ],
)
def test_a_config_that_cannot_be_served(config: Callable[[str], Path], text: str, words: str) -> None:
    refused(seatrial("serve", "--config", config(text)), words)


def test_no_config(tmp_path: Path) -> None:
    refused(seatrial("serve", "--config", tmp_path / "none.yaml"), "no such file")
    assert seatrial("serve").returncode == 2


def test_a_port_in_use(config: Callable[[str], Path]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        path = config(f"model_id: tiny\nengine: {{name: stub}}\nport: {port}")
        refused(seatrial("serve", "--config", path), f"port {port} on 127.0.0.1 is in use")


def test_an_adapter_of_another_base(config: Callable[[str], Path], adapter: Path) -> None:
    described = json.loads((adapter / CONFIG).read_text())
    (adapter / CONFIG).write_text(json.dumps(described | {"base_model_name_or_path": "Qwen/Qwen3-8B"}))
    path = config(f"model_id: tiny\nlora_modules: {{a: {adapter}}}")
    refused(seatrial("serve", "--config", path), "trained on Qwen/Qwen3-8B")


def test_an_adapter_with_truncated_weights(config: Callable[[str], Path], adapter: Path) -> None:
    (adapter / WEIGHTS).write_bytes((adapter / WEIGHTS).read_bytes()[:5000])
    path = config(f"model_id: tiny\nlora_modules: {{a: {adapter}}}")
    refused(seatrial("serve", "--config", path), "safetensors")
    done = seatrial("adapters", "check", adapter, "--base", "tiny")
    refused(done, "safetensors")


def test_an_adapter_that_is_larger_than_the_limit_given(config: Callable[[str], Path], adapter: Path) -> None:
    path = config(f"model_id: tiny\nmax_lora_rank: 1\nlora_modules: {{a: {adapter}}}")
    refused(seatrial("serve", "--config", path), "larger than the server's max_lora_rank 1")


def test_a_server_that_does_not_answer_is_a_failure_not_bad_input() -> None:
    done = seatrial("adapters", "list", "--url", "http://127.0.0.1:9")
    assert done.returncode == 1
    assert "cannot reach http://127.0.0.1:9" in done.stderr


@pytest.mark.parametrize("url", ["ftp://x", "http://", "http://a:b", "http://127.0.0.1:99999"])
def test_what_is_no_url(url: str) -> None:
    refused(seatrial("adapters", "list", "--url", url), "is not the URL of a server")


def test_an_engine_that_is_not_set_up(
    config: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SEATRIAL_HOME", str(tmp_path / "home"))
    refused(seatrial("serve", "--config", config("model_id: tiny")), "cure: seatrial setup engine")

import json
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from seatrial.config.serve import ServeConfig
from seatrial.serving.doctor import diverting_variables, examine, open_files
from seatrial.serving.model_size import named_bytes, weight_bytes
from seatrial.serving.models.catalog import make_own


def test_every_part_of_the_machine_is_reported() -> None:
    subjects = {finding.subject for finding in examine()}
    assert {
        "gpu",
        "engine",
        "train",
        "bench",
        "docker",
        "namespaces",
        "open files",
        "memory",
        "disk",
    } <= subjects


def test_what_is_lacking_comes_with_its_cure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEATRIAL_HOME", str(tmp_path))
    found = {finding.subject: finding for finding in examine()}
    assert found["engine"].cure == "seatrial setup engine"
    assert found["train"].level == "note"


def test_variables_that_could_divert_traffic_are_named_without_their_values() -> None:
    environ = {
        "OPENAI_BASE_URL": "http://x",
        "NEBIUS_API_KEY": "very-secret",
        "https_proxy": "p",
        "PATH": "/bin",
    }
    found = list(diverting_variables(environ))
    assert [finding.level for finding in found] == ["warning", "note", "warning"]
    assert "very-secret" not in str(found)


@pytest.mark.parametrize(
    ("limits", "level"),
    [((1024, 4096), "warning"), ((1024, 1048576), "note"), ((65536, 65536), "ok")],
)
def test_a_low_limit_on_open_files_is_told(limits: tuple[int, int], level: str) -> None:
    assert open_files(limits).level == level


def test_no_limit_at_all_is_fine() -> None:
    assert open_files((resource.RLIM_INFINITY, resource.RLIM_INFINITY)).level == "ok"


def test_a_model_too_large_for_the_machine_is_told() -> None:
    found = [f for f in examine(ServeConfig(model_id="org/Huge-4000B")) if f.subject == "model"]
    assert "warning" in {finding.level for finding in found}


def test_a_model_that_fits_is_told() -> None:
    make_own("tiny", print)
    found = [f for f in examine(ServeConfig(model_id="tiny")) if f.subject == "model"]
    assert [finding.level for finding in found] == ["ok"]


@pytest.mark.parametrize(
    ("name", "gigabytes"),
    [
        ("Qwen/Qwen3-8B", 16),
        ("Qwen/Qwen3-32B-FP8", 32),
        ("HuggingFaceTB/SmolLM2-135M-Instruct", 0.27),
        ("nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16", 60),
        ("TheBloke/Llama-2-7B-AWQ", 4.2),
    ],
)
def test_the_size_in_a_name_is_read(name: str, gigabytes: float) -> None:
    assert named_bytes(name) == pytest.approx(gigabytes * 1e9, rel=0.01)


def test_a_name_without_a_size_tells_nothing() -> None:
    assert weight_bytes("org/model-v2") is None


def test_the_command_prints_for_people_and_for_scripts() -> None:
    command = [sys.executable, "-m", "seatrial", "doctor"]
    assert "memory" in subprocess.run(command, capture_output=True, text=True, check=True).stdout
    findings = json.loads(
        subprocess.run([*command, "--json"], capture_output=True, text=True, check=True).stdout
    )
    assert {"subject", "level", "text", "cure"} == set(findings[0])

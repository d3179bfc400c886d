import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from seatrial.errors import AdapterRefused, BadInput
from seatrial.serving.adapters.adapter import CONFIG, WEIGHTS, Adapter
from seatrial.serving.adapters.gate import Base, Finding, inspect, refuse_failures
from seatrial.serving.adapters.random import make_random
from seatrial.serving.adapters.source import adapter_directory
from seatrial.serving.models import tiny
from seatrial.serving.models.catalog import make_own


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_own("tiny", print, tmp_path_factory.mktemp("models") / "tiny")


@pytest.fixture
def adapter(model: Path, tmp_path: Path) -> Path:
    return make_random(model, tmp_path / "adapter", seed=1)


def edit_config(adapter: Path, **changes: object) -> None:
    config = json.loads((adapter / CONFIG).read_text())
    (adapter / CONFIG).write_text(json.dumps(config | changes))


def edit_weights(adapter: Path, change: Callable[[dict[str, np.ndarray]], dict[str, np.ndarray]]) -> None:
    save_file(change(load_file(adapter / WEIGHTS)), adapter / WEIGHTS)


def outcomes(adapter: Path, base: Base | None) -> dict[str, str]:
    return {finding.check: finding.outcome for finding in inspect(Adapter.read(adapter), base)}


def failure(adapter: Path, base: Base) -> Finding:
    findings = inspect(Adapter.read(adapter), base)
    with pytest.raises(AdapterRefused):
        refuse_failures(Adapter.read(adapter), findings)
    return next(finding for finding in findings if finding.outcome == "failed")


def test_a_good_adapter_passes_every_check(model: Path, adapter: Path) -> None:
    found = outcomes(adapter, Base(str(model), max_lora_rank=16))
    assert set(found.values()) == {"ok"}
    assert list(found) == ["files", "rank", "base", "modules", "nonzero"]


def test_what_cannot_be_told_is_skipped_not_passed(adapter: Path) -> None:
    found = outcomes(adapter, None)
    assert {check for check, outcome in found.items() if outcome == "skipped"} == {"rank", "base", "modules"}


def test_a_rank_above_the_limit_fails(model: Path, adapter: Path) -> None:
    found = failure(adapter, Base(str(model), max_lora_rank=4))
    assert (found.check, "max_lora_rank: 8" in found.cure) == ("rank", True)


def test_another_base_fails(model: Path, adapter: Path) -> None:
    edit_config(adapter, base_model_name_or_path="Qwen/Qwen3-8B")
    assert failure(adapter, Base(str(model))).check == "base"


def test_the_same_base_under_another_path_passes(model: Path, adapter: Path) -> None:
    edit_config(adapter, base_model_name_or_path=f"/somewhere/else/{model.name}/")
    assert outcomes(adapter, Base(str(model)))["base"] == "ok"


def test_two_directories_of_one_name_are_compared_by_their_weights(
    model: Path, adapter: Path, tmp_path: Path
) -> None:
    copy = shutil.copytree(model, tmp_path / "copy" / model.name)
    edit_config(adapter, base_model_name_or_path=str(copy))
    assert outcomes(adapter, Base(str(model)))["base"] == "ok"
    save_file(tiny.weights(seed=7), copy / "model.safetensors")
    assert failure(adapter, Base(str(model))).check == "base"


def test_our_models_are_known_by_their_hub_names(adapter: Path) -> None:
    edit_config(adapter, base_model_name_or_path="HuggingFaceTB/SmolLM2-135M-Instruct")
    assert outcomes(adapter, Base("smollm2"))["base"] == "ok"


def test_a_module_that_the_base_lacks_fails(model: Path, adapter: Path) -> None:
    edit_weights(
        adapter, lambda t: {name.replace("q_proj", "query_proj"): value for name, value in t.items()}
    )
    found = failure(adapter, Base(str(model)))
    assert found.check == "modules"
    assert "query_proj" in found.text


def test_a_module_of_another_shape_fails(model: Path, adapter: Path) -> None:
    edit_weights(
        adapter, lambda t: {n: np.ones((8, 64), np.float32) if "lora_A" in n else v for n, v in t.items()}
    )
    assert failure(adapter, Base(str(model))).check == "modules"


def test_names_under_a_wrapper_are_found(model: Path, adapter: Path) -> None:
    edit_weights(
        adapter, lambda t: {n.replace("model.model.", "model.language_model.model."): v for n, v in t.items()}
    )
    assert outcomes(adapter, Base(str(model)))["modules"] == "ok"


def test_an_untrained_adapter_fails(model: Path, adapter: Path) -> None:
    edit_weights(
        adapter, lambda t: {n: v * 0 if "layers.2" in n and "lora_B" in n else v for n, v in t.items()}
    )
    found = failure(adapter, Base(str(model)))
    assert found.check == "nonzero"
    assert "4 of 16" in found.text


def test_half_a_module_fails(model: Path, adapter: Path) -> None:
    edit_weights(adapter, lambda t: dict(list(t.items())[1:]))
    assert failure(adapter, Base(str(model))).check == "files"


def test_truncated_weights_fail_first_and_alone(model: Path, adapter: Path) -> None:
    whole = (adapter / WEIGHTS).read_bytes()
    (adapter / WEIGHTS).write_bytes(whole[: len(whole) // 2])
    assert outcomes(adapter, Base(str(model))) == {"files": "failed"}


def test_a_missing_directory_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no such adapter directory"):
        adapter_directory(str(tmp_path / "nothing"))

from pathlib import Path

import pytest

from seatrial.config.serve import ServeConfig, read_serve_config
from seatrial.errors import ConfigError
from seatrial.serving.adapters.random import make_random
from seatrial.serving.models.catalog import make_own
from seatrial.serving.plan import assign_gpus, find_family, make_plan

EXAMPLE = """
model_information:
  model_config:
    model_id: "mistralai/Devstral-Small-2-24B-Instruct-2512"
  vllm_engine_config:
    enable_lora: true
    lora_modules:
      devstral-sft: "someone/Devstral-Small-2-24B-SFT-LoRA-OpenThoughts"
      devstral-two: "someone/Devstral-Small-2-24B-Two"
    max_loras: 2
    max_lora_rank: 16
  inference_parameters: {temperature: 0.6, max_tokens: 2048}
"""


def test_a_dry_plan_of_the_nested_example_has_both_adapters_after_one_flag(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text(EXAMPLE)
    plan = make_plan(read_serve_config(tmp_path / "config.yaml"), print, dry=True)
    [launch] = plan.launches
    at = launch.argv.index("--lora-modules")
    assert launch.argv[at + 1 : at + 3] == [
        "devstral-sft=someone/Devstral-Small-2-24B-SFT-LoRA-OpenThoughts",
        "devstral-two=someone/Devstral-Small-2-24B-Two",
    ]
    assert launch.argv.count("--lora-modules") == 1
    assert "--tool-call-parser mistral" in " ".join(launch.argv)


def test_the_rank_limit_comes_from_the_adapters(tmp_path: Path) -> None:
    model = make_own("tiny", print)
    adapters = {
        str(rank): str(make_random(model, tmp_path / str(rank), seed=rank, rank=rank)) for rank in (4, 24)
    }
    plan = make_plan(ServeConfig(model_id="tiny", lora_modules=adapters), print, dry=True)
    assert plan.max_lora_rank == 32


def test_gpus_are_dealt_out_by_tensor_parallel_size() -> None:
    config = ServeConfig(model_id="m", replicas=3, tensor_parallel_size=2)
    assert assign_gpus(config, list("012367")) == [["0", "1"], ["2", "3"], ["6", "7"]]


def test_too_few_gpus_are_said() -> None:
    config = ServeConfig(model_id="m", replicas=2, tensor_parallel_size=4)
    with pytest.raises(ConfigError, match="need 8 GPUs, and there are 4"):
        assign_gpus(config, list("0123"))


def test_a_fine_tuned_directory_has_the_family_of_its_config(tmp_path: Path) -> None:
    merged = make_own("tiny", print, tmp_path / "merged")
    assert find_family(str(merged), str(merged)).name == "qwen3"


def test_urls_of_a_server_that_listens_everywhere_can_be_called() -> None:
    config = ServeConfig(model_id="m", host="0.0.0.0", engine={"device": "cpu"})  # type: ignore[arg-type]
    assert make_plan(config, print, dry=True).urls == ["http://127.0.0.1:8000"]


def test_a_resolved_config_hides_secrets() -> None:
    config = ServeConfig(model_id="m", environment={"WANDB_API_KEY": "very-secret", "A": "1"})
    resolved = make_plan(config, print, dry=True).resolved()
    assert "very-secret" not in str(resolved)
    assert resolved["environment"]["A"] == "1"

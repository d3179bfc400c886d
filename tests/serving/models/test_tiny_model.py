import json
from pathlib import Path

import pytest

from seatrial.errors import BadInput, ConfigError
from seatrial.serving.adapters.tensors import shapes_of_model
from seatrial.serving.models.catalog import make_own, names_of, own_directory, resolve_model


def test_tiny_has_about_a_million_parameters(tmp_path: Path) -> None:
    shapes = shapes_of_model(make_own("tiny", print, tmp_path / "tiny"))
    count = sum(shape[0] * (shape[1] if len(shape) > 1 else 1) for shape in shapes.values())
    assert 900_000 < count < 1_100_000


def test_making_it_again_gives_the_same_weights(tmp_path: Path) -> None:
    first, second = (make_own("tiny", print, tmp_path / name) for name in ("1", "2"))
    assert (first / "model.safetensors").read_bytes() == (second / "model.safetensors").read_bytes()


def test_its_tokenizer_has_a_token_for_every_byte(tmp_path: Path) -> None:
    tokenizer = json.loads((make_own("tiny", print, tmp_path / "tiny") / "tokenizer.json").read_text())
    vocabulary = tokenizer["model"]["vocab"]
    assert sorted(vocabulary.values()) == list(range(259))


def test_an_interrupted_making_is_done_again(tmp_path: Path) -> None:
    directory = make_own("tiny", print, tmp_path / "tiny")
    (directory / "config.json").unlink()
    said: list[str] = []
    make_own("tiny", said.append, directory)
    assert said


def test_a_model_id_means_a_directory_one_of_ours_or_a_hub_id(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SEATRIAL_HOME", str(tmp_path))
    made = resolve_model("tiny", print)
    assert made == str(own_directory("tiny"))
    assert resolve_model(made, print) == made
    assert resolve_model("Qwen/Qwen3-8B", print) == "Qwen/Qwen3-8B"


def test_a_directory_that_is_not_there_or_no_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no such directory"):
        resolve_model(str(tmp_path / "nothing"), print)
    with pytest.raises(ConfigError, match="has no config"):
        resolve_model(str(tmp_path), print)


def test_an_unknown_model_of_ours_names_the_known_ones() -> None:
    with pytest.raises(BadInput) as error:
        make_own("huge", print)
    assert "smollm2, tiny" in error.value.cure


def test_names_of_our_models_include_their_hub_ids() -> None:
    assert names_of("smollm2") & names_of("HuggingFaceTB/SmolLM2-135M-Instruct")
    assert not names_of("smollm2") & names_of("Qwen/Qwen3-8B")

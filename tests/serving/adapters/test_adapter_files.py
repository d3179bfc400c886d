import json
import struct
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from seatrial.errors import AdapterRefused, BadInput
from seatrial.serving.adapters.adapter import CONFIG, WEIGHTS, Adapter, alias_of
from seatrial.serving.adapters.random import make_random
from seatrial.serving.adapters.store import kept
from seatrial.serving.adapters.tensors import TensorFile
from seatrial.serving.models.catalog import make_own


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_own("tiny", print, tmp_path_factory.mktemp("models") / "tiny")


def test_an_adapter_knows_its_rank_base_and_modules(model: Path, tmp_path: Path) -> None:
    adapter = Adapter.read(make_random(model, tmp_path, seed=1, rank=4))
    assert adapter.rank == 4
    assert adapter.base == str(model)
    assert len(adapter.modules()) == 16
    assert all(set(sides) == {"A", "B"} for sides in adapter.modules().values())


def test_the_largest_rank_counts(model: Path, tmp_path: Path) -> None:
    make_random(model, tmp_path, seed=1, rank=4)
    config = json.loads((tmp_path / CONFIG).read_text())
    (tmp_path / CONFIG).write_text(json.dumps(config | {"rank_pattern": {"q_proj": 32}}))
    assert Adapter.read(tmp_path).rank == 32


def test_a_version_follows_the_content(model: Path, tmp_path: Path) -> None:
    one = Adapter.read(make_random(model, tmp_path / "1", seed=1))
    same = Adapter.read(make_random(model, tmp_path / "2", seed=1))
    other = Adapter.read(make_random(model, tmp_path / "3", seed=2))
    assert one.version_of("sql") == same.version_of("sql") != other.version_of("sql")
    assert alias_of(one.version_of("sql")) == "sql"


def test_a_stored_copy_stays_when_the_original_is_trained_over(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SEATRIAL_HOME", str(tmp_path / "home"))
    before = Adapter.read(make_random(model, tmp_path / "out", seed=1))
    copy = kept(before)
    make_random(model, tmp_path / "out", seed=2)
    assert Adapter.read(copy).digest == before.digest
    assert kept(Adapter.read(tmp_path / "out")) != copy


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda path: (path / CONFIG).unlink(), "has no adapter_config.json"),
        (lambda path: (path / CONFIG).write_text("{"), "is broken"),
        (lambda path: (path / CONFIG).write_text('{"peft_type": "PREFIX"}'), "does not describe a LoRA"),
        (lambda path: (path / CONFIG).write_text("[]"), "does not describe a LoRA"),
        (lambda path: (path / CONFIG).write_text('{"peft_type": "LORA", "r": "abc"}'), "no positive number"),
    ],
)
def test_a_directory_that_is_no_adapter_is_refused(
    model: Path, tmp_path: Path, spoil: object, message: str
) -> None:
    make_random(model, tmp_path, seed=1)
    spoil(tmp_path)  # type: ignore[operator]
    with pytest.raises(AdapterRefused, match=message):
        Adapter.read(tmp_path)


def test_a_pickle_is_not_read(model: Path, tmp_path: Path) -> None:
    make_random(model, tmp_path, seed=1)
    (tmp_path / WEIGHTS).rename(tmp_path / "adapter_model.bin")
    with pytest.raises(AdapterRefused, match="a pickle that can run code"):
        _ = Adapter.read(tmp_path).weights


@pytest.mark.parametrize("keep", [0, 4, 100, -1, -1000])
def test_a_truncated_file_is_recognised_wherever_it_was_cut(tmp_path: Path, keep: int) -> None:
    path = tmp_path / "t.safetensors"
    save_file({"a": np.ones((100, 10), np.float32)}, path)
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(BadInput, match=r"truncated|not a whole"):
        TensorFile.read(path)


@pytest.mark.parametrize("header", [b"{", b"[]", b'{"a": {}}', b'{"a": 5}', b"\xff\xfe"])
def test_a_damaged_header_is_recognised(tmp_path: Path, header: bytes) -> None:
    path = tmp_path / "t.safetensors"
    path.write_bytes(struct.pack("<Q", len(header)) + header)
    with pytest.raises(BadInput, match="damaged"):
        TensorFile.read(path)


def test_zeros_of_either_sign_are_zero_and_small_values_are_not(tmp_path: Path) -> None:
    path = tmp_path / "t.safetensors"
    one = np.zeros((8, 8), np.float16)
    one[7, 7] = 1e-7
    save_file(
        {
            "zero": np.zeros((8, 8), np.float32),
            "negative": np.full((8, 8), -0.0, np.float16),
            "one": one,
            "tiny": np.full((4,), 1e-45, np.float32),
        },
        path,
    )
    file = TensorFile.read(path)
    assert {name: file.is_zero(name) for name in file.tensors} == {
        "zero": True,
        "negative": True,
        "one": False,
        "tiny": False,
    }

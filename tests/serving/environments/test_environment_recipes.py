"""The recipes as they ship."""

import re
from pathlib import Path

import pytest

from seatrial.serving.environments import recipes

CONSTRAINTS = sorted((recipes.HERE / "constraints").glob("*.txt"))


def test_every_variant_has_its_constraint_file() -> None:
    names = {path.stem for path in CONSTRAINTS}
    assert names == {"engine-cpu", "engine-cuda", "train-cpu", "train-cuda", "bench"}


@pytest.mark.parametrize("path", CONSTRAINTS, ids=lambda path: path.stem)
def test_constraints_are_nothing_but_pins(path: Path) -> None:
    lines = path.read_text().splitlines()
    assert [
        line for line in lines if not re.fullmatch(r"[A-Za-z0-9._-]+==[0-9][A-Za-z0-9.]*(\+cpu)?", line)
    ] == []
    names = [re.sub(r"[-_.]+", "-", line.partition("==")[0]).lower() for line in lines]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("gpu", [False, True])
def test_every_package_that_a_step_installs_is_pinned(gpu: bool) -> None:
    for recipe in recipes.recipes(gpu=gpu).values():
        for step in recipe.steps:
            if "install" in step.arguments and step.file:
                pinned = {line.partition("==")[0] for line in step.file.read_text().splitlines()}
                asked = step.arguments[step.arguments.index(recipes.FILE) + 1 :]
                assert {name for name in asked if not name.startswith("-")} <= pinned


def test_a_gpu_changes_what_the_engine_is_built_for() -> None:
    with_gpu, without = (recipes.recipes(gpu=gpu)["engine"] for gpu in (True, False))
    assert with_gpu.pythons[0] == "3.12"
    assert without.pythons[0] == "3.11"
    assert with_gpu.base_digest() != without.base_digest()


def test_a_digest_follows_the_files_content_and_not_its_place(tmp_path: Path) -> None:
    for folder, pin in (("a", "x==1"), ("b", "x==1"), ("c", "x==2")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "pins.txt").write_text(pin)
    a, b, c = (recipes.install("x", tmp_path / name / "pins.txt", "x").digest() for name in "abc")
    assert a == b != c

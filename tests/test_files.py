from pathlib import Path

import pytest

from seatrial.files import home, sha256_of, write_whole


def test_a_failed_write_leaves_the_old_file_and_no_scrap(tmp_path: Path) -> None:
    target = tmp_path / "file"
    write_whole(target, "old")

    class Unwritable(str):
        def encode(self, *args: object) -> bytes:  # type: ignore[override]
            return object()  # type: ignore[return-value]

    with pytest.raises(TypeError):
        write_whole(target, Unwritable("new"))
    assert target.read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]


def test_a_write_replaces_the_whole_file(tmp_path: Path) -> None:
    target = tmp_path / "file"
    write_whole(target, "a much longer text")
    write_whole(target, b"short")
    assert target.read_bytes() == b"short"


def test_a_directory_hashes_by_its_files_and_names(tmp_path: Path) -> None:
    first, second = tmp_path / "1", tmp_path / "2"
    for directory in (first, second):
        (directory / "in").mkdir(parents=True)
        (directory / "in" / "a").write_text("x")
        (directory / ".hidden").write_text(directory.name)
    assert sha256_of(first) == sha256_of(second)
    (second / "in" / "a").rename(second / "in" / "b")
    assert sha256_of(first) != sha256_of(second)


def test_home_is_the_users_cache_unless_said_otherwise(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("SEATRIAL_HOME", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert home() == tmp_path / "seatrial"
    monkeypatch.setenv("SEATRIAL_HOME", str(tmp_path / "elsewhere"))
    assert home() == tmp_path / "elsewhere"

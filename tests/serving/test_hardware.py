"""GPUs, from what `nvidia-smi` prints."""

from pathlib import Path

import pytest

from seatrial.serving.hardware import Gpu, gpus, parse_gpus


def test_each_line_is_a_gpu() -> None:
    text = "0, NVIDIA H200, 143771\n1, NVIDIA GB10, [N/A]\n"
    assert parse_gpus(text) == [Gpu(0, "NVIDIA H200", 143771), Gpu(1, "NVIDIA GB10", 0)]


@pytest.mark.parametrize("script", [None, "#!/bin/sh\necho 'No devices were found'\nexit 9\n"])
def test_an_absent_or_failing_tool_means_no_gpu(
    script: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if script:
        (tmp_path / "nvidia-smi").write_text(script)
        (tmp_path / "nvidia-smi").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert gpus() == []

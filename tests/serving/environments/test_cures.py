"""What a failed step's log leads to."""

import pytest

from seatrial.serving.environments.cures import cure_for


@pytest.mark.parametrize(
    ("log", "words"),
    [
        ("OSError: [Errno 28] No space left on device", "disk space"),
        ("ERROR: No matching distribution found for harbor==9.9", "pip finds no harbor==9.9"),
        ("ERROR: No matching distribution found for torch==2.13.0+cpu", "PyTorch's CPU builds"),
        ("[Errno 101] Network is unreachable", "connect to the network"),
        ("ReadTimeoutError: Read timed out.", "PIP_DEFAULT_TIMEOUT"),
        ("python: No module named pip", "venv module"),
        ("Segmentation fault", "read the log"),
    ],
)
def test_a_recognised_cause_has_its_cure_and_how_to_continue(log: str, words: str) -> None:
    cure = cure_for(log, "engine")
    assert words in cure
    assert cure.endswith("continue: seatrial setup engine")

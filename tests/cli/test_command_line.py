import subprocess
import sys

import pytest

from seatrial.cli.main import VERBS, main

HEAVY = ("pydantic", "aiohttp", "numpy", "huggingface_hub", "yaml", "asyncio", "torch")


def test_help_names_every_verb(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit_info:
        main(["--help"])
    assert exit_info.value.code == 0
    shown = capsys.readouterr().out
    assert all(verb in shown for verb in VERBS)


@pytest.mark.parametrize("verb", ["", *VERBS])
def test_help_imports_nothing_heavy(verb: str) -> None:
    program = (
        "import sys\nfrom seatrial.cli.main import main\n"
        "try: main([*sys.argv[1:], '--help'])\nexcept SystemExit: pass\n"
        f"print([name for name in {HEAVY!r} if name in sys.modules], file=sys.stderr)"
    )
    words = [verb] if verb else []
    done = subprocess.run([sys.executable, "-c", program, *words], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("usage: seatrial")
    assert done.stderr.strip() == "[]"


def test_an_unknown_verb_is_bad_input(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit_info:
        main(["sevre"])
    assert exit_info.value.code == 2
    assert "sevre" in capsys.readouterr().err


def test_a_reader_that_goes_away_is_no_crash() -> None:
    command = f"{sys.executable} -m seatrial --help | head -1"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=True)
    assert done.stderr == ""

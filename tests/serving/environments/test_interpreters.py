"""The finder, against tiny shell scripts that stand in for interpreters."""

import subprocess
import sys
from pathlib import Path

import pytest

from seatrial.serving.environments import interpreters

RUNS = '#!/bin/sh\nprintf "3.99\\n%s\\n" "$0"\n'
OTHER_VERSION = '#!/bin/sh\nprintf "3.98\\n%s\\n" "$0"\n'
FAILING_SHIM = '#!/bin/sh\necho "pyenv: python3.99: command not found" >&2\nexit 127\n'
WITHOUT_VENV = '#!/bin/sh\nprintf "3.99\\n%s\\n" "$0"\necho "No module named ensurepip" >&2\nexit 1\n'


def program(path: Path, script: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(script)
    path.chmod(0o755)
    return path


def machine(tmp_path: Path) -> dict[str, str]:
    """The variables of a machine whose PATH has two folders and whose home is empty."""
    return {"PATH": f"{tmp_path / 'shims'}:{tmp_path / 'bin'}", "HOME": str(tmp_path / "home")}


def test_a_plain_command_is_found(tmp_path: Path) -> None:
    python = program(tmp_path / "bin" / "python3.99", RUNS)
    assert interpreters.find(["3.99"], machine(tmp_path)) == str(python)


def test_a_failing_shim_is_skipped_for_what_lies_behind_it(tmp_path: Path) -> None:
    program(tmp_path / "shims" / "python3.99", FAILING_SHIM)
    python = program(tmp_path / "bin" / "python3.99", RUNS)
    assert interpreters.find(["3.99"], machine(tmp_path)) == str(python)


def test_the_newest_of_pyenvs_versions_is_found_behind_a_failing_shim(tmp_path: Path) -> None:
    program(tmp_path / "shims" / "python3.99", FAILING_SHIM)
    versions = tmp_path / "home" / ".pyenv" / "versions"
    program(versions / "3.99.9" / "bin" / "python", RUNS)
    newest = program(versions / "3.99.10" / "bin" / "python", RUNS)
    assert interpreters.find(["3.99"], machine(tmp_path)) == str(newest)


def test_python3_serves_only_if_it_is_of_that_version(tmp_path: Path) -> None:
    program(tmp_path / "shims" / "python3", OTHER_VERSION)
    python = program(tmp_path / "bin" / "python", RUNS)
    assert interpreters.find(["3.99"], machine(tmp_path)) == str(python)


def test_the_given_interpreter_comes_first_if_it_fits(tmp_path: Path) -> None:
    on_path = program(tmp_path / "bin" / "python3.99", RUNS)
    given = program(tmp_path / "given", RUNS)
    unfit = program(tmp_path / "unfit", OTHER_VERSION)
    variables = machine(tmp_path)
    assert interpreters.find(["3.99"], variables | {"SEATRIAL_PYTHON": str(given)}) == str(given)
    assert interpreters.find(["3.99"], variables | {"SEATRIAL_PYTHON": str(unfit)}) == str(on_path)


def test_a_later_version_that_is_there_serves_before_a_download(tmp_path: Path) -> None:
    program(tmp_path / "bin" / "uv", '#!/bin/sh\n[ "$2" = find ] && exit 1\necho downloaded >&2\nexit 1\n')
    python = program(tmp_path / "bin" / "python3.99", RUNS)
    assert interpreters.find(["3.97", "3.99"], machine(tmp_path)) == str(python)


def test_uv_downloads_when_nothing_is_installed(tmp_path: Path) -> None:
    python = program(tmp_path / "managed" / "python3.99", RUNS)
    mark = tmp_path / "installed"
    find = f"if [ -e {mark} ]; then echo {python}; else exit 2; fi"
    program(tmp_path / "bin" / "uv", f'#!/bin/sh\nif [ "$2" = install ]; then : > {mark}; else {find}; fi\n')
    assert interpreters.find(["3.99"], machine(tmp_path)) == str(python)


def test_the_error_names_what_was_tried_and_the_cure(tmp_path: Path) -> None:
    program(tmp_path / "shims" / "python3.99", FAILING_SHIM)
    with pytest.raises(interpreters.NoInterpreter, match=r"Python 3\.99 or 3\.97") as caught:
        interpreters.find(["3.99", "3.97"], machine(tmp_path))
    assert "pyenv: python3.99: command not found" in caught.value.detail
    assert "apt-get install python3.99 python3.99-venv" in caught.value.cure
    assert "uv python install 3.99" in caught.value.cure


def test_an_interpreter_without_venv_is_refused_with_the_package_it_lacks(tmp_path: Path) -> None:
    program(tmp_path / "bin" / "python3.99", WITHOUT_VENV)
    with pytest.raises(interpreters.NoInterpreter) as caught:
        interpreters.find(["3.99"], machine(tmp_path))
    assert "apt-get install python3.99-venv" in caught.value.detail


def test_it_runs_as_a_script_and_prints_an_interpreter_that_runs() -> None:
    version = "{}.{}".format(*sys.version_info)
    found = run_script(version)
    assert found.returncode == 0
    assert subprocess.run([found.stdout.strip(), "-c", ""], check=False).returncode == 0
    missing = run_script("3.1")
    assert missing.returncode == 1
    assert "cure: apt-get install python3.1 " in missing.stderr


def run_script(*wanted: str) -> subprocess.CompletedProcess[str]:
    script = Path(interpreters.__file__)
    return subprocess.run([sys.executable, script, *wanted], capture_output=True, text=True, check=False)

"""Finds a Python of a wanted version that really runs and can make virtual environments.

A command on PATH proves little: pyenv's shims exist for versions that are not active, and Debian's Python
comes without `ensurepip`. So every candidate is run. This file is also a script for bootstrapping, before
anything is installed: standard library only, any Python from 3.8 on. `python3 interpreters.py 3.12 3.13`
prints the path of the first wanted version that runs.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

# In a virtual environment the interpreter it was made from is the one to use: the environment may go away.
PROBE = """
import os, sys
base = getattr(sys, "_base_executable", "")
print("%d.%d" % sys.version_info[:2])
print(base if base and os.path.exists(base) else sys.executable)
import venv, ensurepip
"""


class NoInterpreter(Exception):
    """No wanted version runs here; says what was tried and what to install."""

    def __init__(self, wanted: Sequence[str], rejected: Sequence[str]) -> None:
        super().__init__("found no Python " + " or ".join(wanted) + " that runs and can make environments")
        self.detail = "\n".join("tried " + line for line in rejected)
        first = wanted[0]
        self.cure = (
            f"apt-get install python{first} python{first}-venv, or: pip install uv && "
            f"uv python install {first}, or let SEATRIAL_PYTHON name one"
        )


def find(wanted: Sequence[str], environ: Mapping[str, str]) -> str:
    """The path of the first version in `wanted` that runs; what is installed comes before any download."""
    rejected: list[str] = []
    for source in (installed, downloaded):
        for version in wanted:
            tried = set()
            for candidate in source(version, environ):
                if candidate in tried:
                    continue
                tried.add(candidate)
                path, reason = probe(candidate, version, environ)
                if path:
                    return path
                rejected.append(f"{candidate}: {reason}")
    raise NoInterpreter(wanted, rejected)


def installed(version: str, environ: Mapping[str, str]) -> Iterator[str]:
    if given := environ.get("SEATRIAL_PYTHON"):
        yield given
    for name in (f"python{version}", "python3", "python"):
        for folder in filter(None, environ.get("PATH", "").split(os.pathsep)):
            if os.access(Path(folder, name), os.X_OK):
                yield str(Path(folder, name))
    pyenv = Path(environ.get("PYENV_ROOT") or Path(environ.get("HOME", "/"), ".pyenv"))
    patches = [p for p in (pyenv / "versions").glob(f"{version}.*") if (p / "bin" / "python").exists()]
    for patch in sorted(patches, key=patch_number, reverse=True):
        yield str(patch / "bin" / "python")
    yield from uv(environ, "find", version)


def downloaded(version: str, environ: Mapping[str, str]) -> Iterator[str]:
    for _ in uv(environ, "install", version):
        yield from uv(environ, "find", version)


def patch_number(folder: Path) -> int:
    digits = folder.name.rpartition(".")[2]
    return int(digits) if digits.isdigit() else -1


def uv(environ: Mapping[str, str], verb: str, version: str) -> Iterator[str]:
    """What `uv python VERB VERSION` prints; nothing where uv is absent or fails."""
    program = shutil.which("uv", path=environ.get("PATH", ""))
    if program:
        answer = run([program, "python", verb, version], environ, timeout=600)
        if answer.returncode == 0:
            yield answer.stdout.strip()


def probe(candidate: str, version: str, environ: Mapping[str, str]) -> tuple[str, str]:
    """The interpreter's own path and no reason, or no path and the reason against it."""
    answer = run([candidate, "-I", "-c", PROBE], environ, timeout=30)
    lines = answer.stdout.splitlines()
    if len(lines) != 2:
        return "", (answer.stderr.strip().splitlines() or ["does not run"])[-1]
    if lines[0] != version:
        return "", f"is Python {lines[0]}, not {version}"
    if answer.returncode != 0:
        return "", f"cannot make environments: apt-get install python{version}-venv"
    return lines[1], ""


def run(command: list[str], environ: Mapping[str, str], timeout: float) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            command, env=dict(environ), capture_output=True, text=True, timeout=timeout, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return subprocess.CompletedProcess(command, 1, "", str(error))


def main(wanted: Sequence[str]) -> int:
    try:
        print(find(wanted or ["3.12"], os.environ))
    except NoInterpreter as error:
        print(f"{error.detail}\n{error}\n  cure: {error.cure}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

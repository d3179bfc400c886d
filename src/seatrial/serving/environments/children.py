"""Child processes of a set-up: what they inherit, where their output goes, and that none outlives us."""

import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from seatrial.secrets import without_secrets

# They would make pip install elsewhere, or the child import from elsewhere.
DIVERTING = {"PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "PIP_TARGET", "PIP_PREFIX", "PIP_USER", "PIP_ROOT"}
POLL_SECONDS = 0.2


def child_variables(environ: Mapping[str, str]) -> dict[str, str]:
    """The variables for an installer: the user's, less secrets and what would divert it."""
    kept = {name: value for name, value in without_secrets(environ).items() if name not in DIVERTING}
    return kept | {"PIP_NO_INPUT": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1", "PYTHONNOUSERSITE": "1"}


def run_logged(
    command: Sequence[str],
    log: Path,
    *,
    inherit: Sequence[int] = (),
    started: Callable[[int], None] = lambda process: None,
    tick: Callable[[float], None] = lambda seconds: None,
) -> int:
    """Run `command` with its output in `log` and give its exit status; if we are stopped, stop all of it."""
    begin = time.monotonic()
    with log.open("wb") as output:
        output.write(f"$ {' '.join(command)}\n".encode())
        output.flush()
        child = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=child_variables(os.environ),
            start_new_session=True,
            pass_fds=inherit,
        )
    try:
        started(child.pid)
        while True:
            try:
                return child.wait(POLL_SECONDS)
            except subprocess.TimeoutExpired:
                tick(time.monotonic() - begin)
    except BaseException:
        stop_group(child)
        raise


def stop_group(child: subprocess.Popen[bytes]) -> None:
    """End the child and everything it started, gently at first."""
    for sign in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(child.pid, sign)
            child.wait(5)
        except ProcessLookupError:
            break
        except subprocess.TimeoutExpired:
            continue
    child.wait()

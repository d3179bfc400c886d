"""A running `seatrial serve` as a test sees it: a process, its output, and the processes below it."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml
from http_client import call

from seatrial.serving import keeper


def wait_until(condition: Callable[[], bool], seconds: float = 30) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.05)


def is_alive(pid: int) -> bool:
    """Whether a process runs; one that has ended and is not yet reaped does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def answers(url: str) -> bool:
    try:
        return call(f"{url}/health").status == 200
    except OSError:
        return False


class Served:
    def __init__(
        self,
        config: dict[str, Any],
        directory: Path,
        *,
        console: Path | None = None,
        log: Path | None = None,
        nohup: bool = False,
    ) -> None:
        directory.mkdir(parents=True)
        self.ports = [config["port"] + index for index in range(config.get("replicas", 1))]
        self.run = directory / "run"
        self._console = console or directory / "console"
        if log is not None:
            (self.run / "logs").mkdir(parents=True)
            (self.run / "logs" / "replica-0.log").symlink_to(log)
        path = directory / "config.yaml"
        path.write_text(yaml.safe_dump(config))
        with self._console.open("w") as console:
            command = [sys.executable, "-m", "seatrial", "serve", "--config", str(path)]
            self.process = subprocess.Popen(
                [*(["nohup"] if nohup else []), *command, "--run-dir", str(self.run)],
                stdout=console,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.ports[0]}"

    def output(self) -> str:
        return self._console.read_text()

    def wait_ready(self, seconds: float = 30) -> "Served":
        wait_until(lambda: "Ctrl-C stops" in self.output() or self.process.poll() is not None, seconds)
        assert self.process.poll() is None, self.output()[-4000:]
        return self

    def keepers(self) -> list[int]:
        """The keepers' processes, by replica."""
        below = keeper.descendants(self.process.pid)
        return sorted(pid for pid in below if keeper.__file__.encode() in command_line(pid))

    def engine_of(self, replica: int) -> int:
        """The engine's process of a replica, found by its port."""
        port = f"--port\0{self.ports[replica]}".encode()
        keepers = set(self.keepers())
        below = keeper.descendants(self.process.pid)
        return next(pid for pid in below if pid not in keepers and port in command_line(pid))

    def stop(self) -> int:
        self.process.terminate()
        return self.process.wait(60)

    def kill_all(self) -> None:
        below = keeper.descendants(self.process.pid)
        self.process.kill()
        self.process.wait()
        for pid in below:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue


def command_line(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""

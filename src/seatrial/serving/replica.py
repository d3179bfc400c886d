"""One engine process: started under its keeper, its log kept line by line, asked until it is healthy."""

import asyncio
import contextlib
import json
import os
import re
import sys
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import IO

from seatrial.errors import BadInput, EngineError, SeatrialError, ServerError
from seatrial.secrets import without_secrets
from seatrial.serving import keeper
from seatrial.serving.client import Client, Refused
from seatrial.serving.diagnosis import cause_of, error_line, phase_of
from seatrial.serving.launch import Launch

TAIL_LINES = 400
SHOWN_LINES = 30
GRACE_SECONDS = 15
POLL_SECONDS = 0.5
LINE_END = re.compile(rb"\r\n|\n|\r")


class Replica:
    def __init__(
        self,
        index: int,
        launch: Launch,
        url: str,
        log: Path,
        *,
        say: Callable[[str], None],
        echo: Callable[[str], None],
        secrets: tuple[str, ...] = (),
    ) -> None:
        self.index = index
        self.launch = launch
        self.url = url
        self.log = log
        self.tail: deque[str] = deque(maxlen=TAIL_LINES)
        self._say = say
        self._echo = echo
        self._secrets = secrets
        self._process: asyncio.subprocess.Process | None = None
        self._pump: asyncio.Task[None] | None = None
        self._below: list[int] = []
        self._phase = "starting"
        self._started = 0.0

    async def start(self) -> None:
        self.tail.clear()
        self._phase = "starting"
        self._started = time.monotonic()
        command = [sys.executable, "-I", "-S", keeper.__file__]
        command += [str(GRACE_SECONDS), json.dumps(self.launch.clean), *self.launch.argv]
        self._process = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            env=without_secrets(os.environ, keep=self._secrets) | self.launch.environment,
            start_new_session=True,  # Ctrl-C is for the supervisor, which then stops its engines in order
        )
        self._pump = asyncio.create_task(self._read_log())
        self._below = []

    def look(self) -> None:
        """Remember which processes are the engine's, for the day its keeper is killed."""
        if self._process is not None and self._process.returncode is None:
            self._below = keeper.descendants(self._process.pid)

    async def wait_exit(self) -> int:
        """The engine's exit code, once it and all it started are gone."""
        assert self._process is not None
        assert self._pump is not None
        code = await self._process.wait()
        self._end_adopted()
        await self._pump
        if code < 0:
            # The keeper itself was killed, so nobody has removed the container.
            await asyncio.to_thread(keeper.run_quietly, self.launch.clean)
        return code

    def _end_adopted(self) -> None:
        """End what a killed keeper left: as its subreaper we are the parent now."""
        for pid in self._below:
            if keeper.parent_of(pid) == os.getpid():
                keeper.kill_all([pid])
                with contextlib.suppress(ChildProcessError):
                    os.waitpid(pid, 0)
        # Their own children come to us only as their parents go.
        if any(keeper.parent_of(pid) == os.getpid() for pid in self._below):
            self._end_adopted()

    async def wait_healthy(self, model: str, timeout_s: float) -> float:
        """Return the seconds the start took, or raise what kept the engine from becoming healthy."""
        healthy = asyncio.create_task(self._ask_until_healthy(model))
        ended = asyncio.create_task(self.wait_exit())
        try:
            await asyncio.wait({healthy, ended}, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
            if healthy.done():
                healthy.result()
                return time.monotonic() - self._started
            if ended.done():
                raise self.death(ended.result())
            raise EngineError(
                f"replica {self.index} was not healthy after {timeout_s:.0f} s; last seen {self._phase}",
                cure=f"see {self.log}, or raise start_timeout_s",
                detail=self.shown_tail(),
            )
        finally:
            for task in (healthy, ended):
                task.cancel()

    async def stop(self) -> None:
        """Ask the engine to stop, and wait until nothing of it is left."""
        if self._process is None or self._process.returncode is not None:
            return
        with contextlib.suppress(ProcessLookupError):
            self._process.terminate()
        await self.wait_exit()

    def death(self, code: int) -> SeatrialError:
        """Why the engine died, in its own words, with the cure where the cause is known."""
        how = f"exit code {code}" if code < 128 else f"signal {code - 128}"
        head = f"replica {self.index} died while {self._phase} ({how})"
        known = cause_of(self.tail)
        if known is None:
            words = error_line(self.tail) or "it gave no reason"
            return EngineError(f"{head}: {words}", cure=f"see {self.log}", detail=self.shown_tail())
        cause, line = known
        kind = BadInput if cause.input_fault else EngineError
        return kind(f"{head}: {cause.message}: {line}", cure=cause.cure, detail=self.shown_tail())

    def shown_tail(self) -> str:
        return "\n".join(list(self.tail)[-SHOWN_LINES:])

    async def _ask_until_healthy(self, model: str) -> None:
        async with Client(self.url, timeout_s=120) as client:
            while not await client.healthy():  # noqa: ASYNC110 - the event is on the other side of a socket
                await asyncio.sleep(POLL_SECONDS)
            self._enter("answering its first completion")
            try:
                await client.complete(model, "1", max_tokens=1, temperature=0)
            except Refused as refusal:
                raise EngineError(
                    f"replica {self.index} is up but cannot complete: {refusal.reason}",
                    cure=f"see {self.log}",
                ) from None
            except ServerError as error:
                # It went away between two questions: its exit code and log say more than this error does.
                await asyncio.sleep(5)
                raise EngineError(f"replica {self.index}: {error.message}", cure=f"see {self.log}") from None

    async def _read_log(self) -> None:
        assert self._process is not None
        assert self._process.stdout is not None
        with self.log.open("a", buffering=1, errors="replace") as file:
            rest = b""
            while chunk := await self._process.stdout.read(65536):
                *lines, rest = LINE_END.split(rest + chunk)
                for line in lines:
                    self._take(line, file)
            if rest:
                self._take(rest, file)

    def _take(self, raw: bytes, file: IO[str]) -> None:
        line = raw.decode(errors="replace").rstrip()
        if not line:
            return
        self.tail.append(line)
        # A full disk must not stop the reading: the engine would block on its full pipe and hang.
        with contextlib.suppress(OSError):
            file.write(line + "\n")
        self._echo(line)
        if phase := phase_of(line):
            self._enter(phase)

    def _enter(self, phase: str) -> None:
        if phase != self._phase and self._phase != "answering its first completion":
            self._phase = phase
            self._say(f"replica {self.index}: {phase} ({time.monotonic() - self._started:.0f} s)")

"""One engine process: started under its keeper, its log kept line by line, asked until it is healthy."""

import asyncio
import contextlib
import json
import os
import re
import signal
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
HASTY_SECONDS = 2
"""The grace of an engine that never became healthy."""
POLL_SECONDS = 0.5
EXIT_POLL_SECONDS = 0.1
LAST_WORDS_SECONDS = 5
"""How long a dead engine's log may take to end, and a dying engine to die."""
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
        api_key: str | None = None,
    ) -> None:
        self.index = index
        self.launch = launch
        self.url = url
        self.log = log
        self.tail: deque[str] = deque(maxlen=TAIL_LINES)
        self._say = say
        self._echo = echo
        self._secrets = secrets
        self._api_key = api_key
        self._process: asyncio.subprocess.Process | None = None
        self._pump: asyncio.Task[None] | None = None
        self._mark = ""
        self._was_healthy = False
        self._seen: dict[int, str | None] = {}
        """The engine's processes as they were last seen, and when each began."""
        self._phase = "starting"
        self._started = 0.0

    async def start(self) -> None:
        self.tail.clear()
        self._phase = "starting"
        self._started = time.monotonic()
        self._seen.clear()
        self._was_healthy = False
        self._mark = f"SEATRIAL_REPLICA={os.getpid()}.{self.index}.{time.monotonic_ns()}"
        name, _, value = self._mark.partition("=")
        command = [sys.executable, "-I", "-S", keeper.__file__]
        command += [str(GRACE_SECONDS), json.dumps(self.launch.clean), *self.launch.argv]
        try:
            self._process = await asyncio.create_subprocess_exec(
                *command,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.STDOUT,
                env=without_secrets(os.environ, keep=self._secrets) | self.launch.environment | {name: value},
                start_new_session=True,  # Ctrl-C is for the supervisor, which then stops its engines in order
            )
        except OSError as error:
            raise EngineError(f"replica {self.index} could not be started: {error}") from None
        self._pump = asyncio.create_task(self._read_log(self._process))

    def look(self) -> None:
        """Remember the engine's processes, for the day its keeper is killed."""
        if self._process is not None and self._process.returncode is None:
            self._seen = {pid: keeper.born(pid) for pid in keeper.descendants(self._process.pid)}

    async def wait_exit(self) -> int:
        """The engine's exit code, once it and all it started are gone."""
        assert self._process is not None
        assert self._pump is not None
        # Not asyncio's own wait: that ends only when the pipe is closed too, which orphans of the engine may hold.
        while (code := self._process.returncode) is None:  # noqa: ASYNC110
            await asyncio.sleep(EXIT_POLL_SECONDS)
        if code < 0:
            # The keeper itself was killed, so what it would have cleared up is left to us.
            await self._end_abandoned()
        with contextlib.suppress(TimeoutError):
            # Shielded: whoever waits may be cancelled, and the log is read to its end all the same.
            await asyncio.wait_for(asyncio.shield(self._pump), LAST_WORDS_SECONDS)
        return code

    async def _end_abandoned(self) -> None:
        """End what a killed keeper left behind: what was seen below it last, and what carries its mark, which a
        process loses when it sets its title."""
        shared: set[str] = set()
        while abandoned := self._abandoned():
            shared |= keeper.shared_memory_of(abandoned)
            keeper.kill_all(abandoned)
            await asyncio.sleep(EXIT_POLL_SECONDS)
        for path in shared:
            keeper.remove(path)
        for pid in self._seen:
            if keeper.parent_of(pid) == os.getpid():  # as their subreaper we inherited them
                os.waitpid(pid, os.WNOHANG)  # noqa: ASYNC222 - they have ended
        await asyncio.to_thread(keeper.run_quietly, self.launch.clean)

    def _abandoned(self) -> list[int]:
        for pid in keeper.marked(self._mark):
            self._seen.setdefault(pid, keeper.born(pid))
        return [pid for pid, began in self._seen.items() if began is not None and keeper.born(pid) == began]

    async def wait_healthy(self, model: str, timeout_s: float) -> float:
        """Return the seconds the start took, or raise what kept the engine from becoming healthy."""
        healthy = asyncio.create_task(self._ask_until_healthy(model, timeout_s))
        ended = asyncio.create_task(self.wait_exit())
        try:
            await asyncio.wait({healthy, ended}, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
            if healthy.done():
                healthy.result()
                self._was_healthy = True
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
        if self._process is None:
            return
        self._terminate()
        if not self._was_healthy:
            # It has nothing to finish, and an engine that is still loading does not listen to signals for long.
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self.wait_exit(), HASTY_SECONDS)
            self._terminate()
        await self.wait_exit()

    def _terminate(self) -> None:
        if self._process is not None and self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                self._process.terminate()

    def death(self, code: int) -> SeatrialError:
        """Why the engine died, in its own words, with the cure where the cause is known."""
        killed = -code if code < 0 else code - 128
        how = f"exit code {code}" if 0 <= code < 128 else f"signal {killed}"
        head = f"replica {self.index} died while {self._phase} ({how})"
        known = cause_of(self.tail)
        if known is None:
            words = error_line(self.tail) or "it gave no reason"
            if killed == signal.SIGKILL:
                words += "; if nobody killed it, the kernel may have, for want of memory (dmesg tells)"
            return EngineError(f"{head}: {words}", cure=f"see {self.log}", detail=self.shown_tail())
        cause, line = known
        kind = BadInput if cause.input_fault else EngineError
        return kind(f"{head}: {cause.message}: {line}", cure=cause.cure, detail=self.shown_tail())

    def shown_tail(self) -> str:
        return "\n".join(list(self.tail)[-SHOWN_LINES:])

    async def _ask_until_healthy(self, model: str, timeout_s: float) -> None:
        async with Client(self.url, timeout_s=timeout_s, api_key=self._api_key) as client:
            while not await client.healthy():
                self.look()
                await asyncio.sleep(POLL_SECONDS)
            self._enter("answering its first completion")
            try:
                await client.complete(model, "1", max_tokens=1, temperature=0)
            except ServerError as error:
                if not isinstance(error, Refused) or error.status >= 500:
                    # It may be dying: its exit code and its log then say more than this error does.
                    await asyncio.sleep(LAST_WORDS_SECONDS)
                raise EngineError(
                    f"replica {self.index} is up but cannot complete: {error.message}", cure=f"see {self.log}"
                ) from None

    async def _read_log(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdout is not None
        file = self.log.open("a", buffering=1, errors="replace")
        try:
            rest = b""
            while chunk := await process.stdout.read(65536):
                *lines, rest = LINE_END.split(rest + chunk)
                for line in lines:
                    self._take(line, file)
            if rest:
                self._take(rest, file)
        finally:
            with contextlib.suppress(OSError):
                file.close()

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

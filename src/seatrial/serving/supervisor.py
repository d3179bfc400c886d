"""Keeps the replicas of a plan alive: starts them, waits until they are healthy, restarts the dead, stops them all."""

import asyncio
import contextlib
import os
import signal
import time
from collections import deque
from collections.abc import Callable
from typing import Any

from seatrial.config.serve import RestartPolicy
from seatrial.errors import EngineError, SeatrialError, ServerError
from seatrial.runs import Run
from seatrial.serving import keeper, registry
from seatrial.serving.client import Client
from seatrial.serving.limits import open_files_warning, raise_open_files
from seatrial.serving.plan import NEEDED_SECRETS, Plan
from seatrial.serving.replica import Replica

WATCH_SECONDS = 2


class Supervisor:
    def __init__(
        self,
        plan: Plan,
        run: Run,
        *,
        say: Callable[[str], None],
        echo: Callable[[int, str], None] = lambda index, line: None,
        on_ready: Callable[[], None] = lambda: None,
    ) -> None:
        self.plan = plan
        self.run_directory = run
        self._say = say
        self._on_ready = on_ready
        logs = run.path / "logs"
        logs.mkdir(exist_ok=True)
        self._replicas = [
            Replica(
                index,
                launch,
                url,
                logs / f"replica-{index}.log",
                say=say,
                echo=lambda line, index=index: echo(index, line),  # type: ignore[misc]
                secrets=NEEDED_SECRETS,
            )
            for index, (launch, url) in enumerate(zip(plan.launches, plan.urls, strict=True))
        ]
        self._waiting_for = set(range(len(self._replicas)))
        """Replicas that have not been healthy yet."""
        self._stopping = asyncio.Event()

    def stop(self) -> None:
        """Begin an orderly stop; `serve` returns when it is done."""
        self._stopping.set()

    async def serve(self) -> None:
        """Serve until told to stop. Raises when a replica cannot start, or when all have been given up."""
        limit = raise_open_files()
        if warning := open_files_warning(limit):
            self._say(f"warning: {warning}")
        # Whatever a killed keeper leaves behind becomes our child, where its replica finds it.
        keeper.prctl(keeper.PR_SET_CHILD_SUBREAPER, 1)
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, self.stop)
        keepers = [asyncio.create_task(self._keep(replica)) for replica in self._replicas]
        stopping = asyncio.create_task(self._stopping.wait())
        try:
            # Ends with the first error, when every replica was given up, or when we are told to stop.
            alive = asyncio.create_task(_all(keepers))
            await asyncio.wait({alive, stopping}, return_when=asyncio.FIRST_COMPLETED)
            if stopping.done():
                self._say("stopping")
            else:
                alive.result()
                raise EngineError(
                    "every replica was given up", cure=f"see {self.run_directory.path / 'logs'}"
                )
        finally:
            self._stopping.set()
            for task in keepers:
                task.cancel()
            await asyncio.gather(*keepers, return_exceptions=True)
            await asyncio.gather(*(replica.stop() for replica in self._replicas))
            for url in self.plan.urls:
                registry.withdraw(url)

    async def _keep(self, replica: Replica) -> None:
        """One replica's life: start, serve, and start again after a death, until it dies too often."""
        restarts = Restarts(self.plan.config.restart)
        adapters: dict[str, str] = {}
        while True:
            await replica.start()
            code: int | None = None
            try:
                seconds = await replica.wait_healthy(self.plan.config.name, self.plan.config.start_timeout_s)
                await self._became_healthy(replica, seconds, adapters)
                code = await self._serve_until_death(replica, adapters)
                reason = f"ended with {code}"
            except SeatrialError as error:
                if replica.index in self._waiting_for:
                    raise
                reason = error.message
            await replica.stop()
            delay = restarts.next_delay(time.monotonic())
            self._record("replica_died", replica=replica.index, code=code, reason=reason)
            if delay is None:
                self._say(replica.shown_tail())
                self._say(
                    f"replica {replica.index} {reason}: given up after {self.plan.config.restart.limit} restarts;"
                    f" its log is {replica.log}"
                )
                self._record("replica_given_up", replica=replica.index)
                return
            self._say(f"replica {replica.index} {reason}: restarting in {delay:.0f} s")
            await asyncio.sleep(delay)

    async def _became_healthy(self, replica: Replica, seconds: float, adapters: dict[str, str]) -> None:
        async with Client(replica.url, timeout_s=120) as client:
            for name, path in adapters.items():
                try:
                    await client.load_adapter(name, path)
                except ServerError as error:
                    self._say(
                        f"replica {replica.index}: adapter {name} could not be loaded again: {error.message}"
                    )
        registry.announce(
            registry.Note(
                replica.url,
                os.getpid(),
                self.plan.model,
                self.plan.max_lora_rank,
                str(self.run_directory.path.resolve()),
            )
        )
        self._record("replica_healthy", replica=replica.index, seconds=round(seconds, 1))
        restored = f", with {', '.join(adapters)} loaded again" if adapters else ""
        self._say(f"replica {replica.index}: healthy after {seconds:.0f} s at {replica.url}{restored}")
        first_time = bool(self._waiting_for)
        self._waiting_for.discard(replica.index)
        if first_time and not self._waiting_for:
            self._on_ready()

    async def _serve_until_death(self, replica: Replica, adapters: dict[str, str]) -> int:
        watch = asyncio.create_task(self._watch(replica, adapters))
        try:
            return await replica.wait_exit()
        finally:
            watch.cancel()

    async def _watch(self, replica: Replica, adapters: dict[str, str]) -> None:
        """Remember the replica's processes, and what clients have loaded, to serve it again after a restart."""
        given = set(self.plan.config.lora_modules)
        async with Client(replica.url, timeout_s=30) as client:
            while True:
                replica.look()
                if self.plan.config.lora:
                    with contextlib.suppress(ServerError):
                        _, loaded = await client.base_and_adapters()
                        adapters.clear()
                        adapters.update({card.name: card.root for card in loaded if card.name not in given})
                await asyncio.sleep(WATCH_SECONDS)

    def _record(self, event: str, **fields: Any) -> None:
        try:
            self.run_directory.event(event, **fields)
        except OSError as error:
            # A full disk is no reason to stop serving.
            self._say(f"warning: {event} could not be written to {self.run_directory.path}: {error.strerror}")


class Restarts:
    """How often a replica may be started again, and how long to wait before. Pure but for its memory."""

    def __init__(self, policy: RestartPolicy) -> None:
        self._policy = policy
        self._times: deque[float] = deque()

    def next_delay(self, now: float) -> float | None:
        """Seconds to wait before the next start, or None when the limit is reached."""
        while self._times and now - self._times[0] > self._policy.window_s:
            self._times.popleft()
        if len(self._times) >= self._policy.limit:
            return None
        delay = min(self._policy.first_delay_s * 2 ** len(self._times), self._policy.max_delay_s)
        self._times.append(now)
        return float(delay)


async def _all(tasks: list[asyncio.Task[None]]) -> None:
    await asyncio.gather(*tasks)

"""Keeps the replicas of a plan alive: starts them, waits until they are healthy, restarts the dead, stops them all."""

import asyncio
import contextlib
import os
import signal
import time
from collections.abc import Callable
from typing import Any

from seatrial.errors import EngineError, SeatrialError, ServerError
from seatrial.runs import Run
from seatrial.serving import keeper, registry
from seatrial.serving.adapters import journal
from seatrial.serving.adapters.memory import Memory
from seatrial.serving.client import Client
from seatrial.serving.limits import open_files_warning, raise_open_files
from seatrial.serving.plan import NEEDED_SECRETS, Plan
from seatrial.serving.replica import Replica
from seatrial.serving.restarts import Restarts

WATCH_SECONDS = 1
HEALTH_SECONDS = 10
SILENCE_SECONDS = 30
"""After so long without an answer, it is said."""


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
                api_key=plan.api_key,
            )
            for index, (launch, url) in enumerate(zip(plan.launches, plan.urls, strict=True))
        ]
        self._waiting_for = set(range(len(self._replicas)))
        """Replicas that have not been healthy yet."""
        self.was_ready = False
        self._stopping = asyncio.Event()

    def stop(self) -> None:
        """Begin an orderly stop; `serve` returns when it is done."""
        self._stopping.set()

    async def serve(self) -> None:
        """Serve until told to stop. Raises when a replica cannot start, or when all have been given up."""
        with registry.claimed(self.plan.urls):
            await self._serve()

    async def _serve(self) -> None:
        limit = raise_open_files()
        if warning := open_files_warning(limit):
            self._say(f"warning: {warning}")
        # Whatever a killed keeper leaves behind becomes our child, where its replica finds it.
        keeper.prctl(keeper.PR_SET_CHILD_SUBREAPER, 1)
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) is not signal.SIG_IGN:  # as nohup asks of SIGHUP
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
                with contextlib.suppress(OSError):
                    journal.end(url)
                    registry.withdraw(url)

    async def _keep(self, replica: Replica) -> None:
        """One replica's life: start, serve, and start again after a death, until it dies too often."""
        restarts = Restarts(self.plan.config.restart)
        memory = Memory(replica.url, self.plan.versions)
        self._begin_journal(replica)
        while True:
            code: int | None = None
            try:
                await replica.start()
                seconds = await replica.wait_healthy(self.plan.config.name, self.plan.config.start_timeout_s)
                await self._became_healthy(replica, seconds, memory)
                code = await self._serve_until_death(replica, memory)
                reason = f"replica {replica.index} ended with {code}"
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
                    f"{reason}: given up after {self.plan.config.restart.limit} restarts;"
                    f" its log is {replica.log}"
                )
                self._record("replica_given_up", replica=replica.index)
                return
            self._say(f"{reason}: restarting in {delay:.0f} s")
            await asyncio.sleep(delay)

    async def _became_healthy(self, replica: Replica, seconds: float, memory: Memory) -> None:
        restored: list[str] = []
        if self.plan.config.lora:
            async with self._client(replica) as client:
                restored, failed = await memory.restore(client)
            for name, reason in failed.items():
                self._say(f"replica {replica.index}: adapter {name} could not be loaded again: {reason}")
        self._announce(replica)
        self._record("replica_healthy", replica=replica.index, seconds=round(seconds, 1), adapters=restored)
        with_adapters = f", with {', '.join(restored)}" if restored else ""
        self._say(f"replica {replica.index}: healthy after {seconds:.0f} s at {replica.url}{with_adapters}")
        first_time = bool(self._waiting_for)
        self._waiting_for.discard(replica.index)
        if first_time and not self._waiting_for:
            self.was_ready = True
            self._on_ready()

    def _announce(self, replica: Replica) -> None:
        run = str(self.run_directory.path.resolve())
        note = registry.Note(replica.url, os.getpid(), self.plan.model, self.plan.max_lora_rank, run)
        try:
            registry.announce(note)
        except OSError as error:
            self._say(f"warning: other commands will not know this server's rank limit: {error}")

    def _client(self, replica: Replica) -> Client:
        return Client(replica.url, timeout_s=120, api_key=self.plan.api_key)

    async def _serve_until_death(self, replica: Replica, memory: Memory) -> int:
        watches = [asyncio.create_task(self._watch_health(replica))]
        if self.plan.config.lora:
            watches.append(asyncio.create_task(self._watch_adapters(replica, memory)))
        try:
            return await replica.wait_exit()
        finally:
            for watch in watches:
                watch.cancel()
            memory.catch_up()

    async def _watch_health(self, replica: Replica) -> None:
        """Keep track of a replica's processes, and end it when it no longer answers."""
        answered, told = time.monotonic(), False
        limit = self.plan.config.restart.unresponsive_s
        async with Client(replica.url, timeout_s=HEALTH_SECONDS) as client:
            while True:
                replica.look()
                if await client.healthy():
                    answered, told = time.monotonic(), False
                silent = time.monotonic() - answered
                if silent > limit:
                    self._say(f"replica {replica.index} has not answered for {silent:.0f} s: ending it")
                    await replica.stop()
                elif silent > SILENCE_SECONDS and not told:
                    self._say(f"replica {replica.index} has not answered for {silent:.0f} s")
                    told = True
                await asyncio.sleep(WATCH_SECONDS)

    async def _watch_adapters(self, replica: Replica, memory: Memory) -> None:
        """Keep the memory of a replica's adapters fresh."""
        async with self._client(replica) as client:
            while True:
                with contextlib.suppress(ServerError):
                    if await memory.look(client):
                        self._record("adapters", replica=replica.index, loaded=sorted(memory.wanted))
                await asyncio.sleep(WATCH_SECONDS)

    def _begin_journal(self, replica: Replica) -> None:
        try:
            journal.begin(replica.url)
        except OSError as error:
            self._say(f"warning: adapters loaded just before a crash may be lost in it: {error}")

    def _record(self, event: str, **fields: Any) -> None:
        try:
            self.run_directory.event(event, **fields)
        except OSError as error:
            # A full disk is no reason to stop serving.
            self._say(f"warning: {event} could not be written to {self.run_directory.path}: {error.strerror}")


async def _all(tasks: list[asyncio.Task[None]]) -> None:
    await asyncio.gather(*tasks)

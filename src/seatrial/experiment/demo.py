"""The demo: a real small model on a real engine, and an adapter that comes and goes while it serves."""

import asyncio
import tempfile
from collections.abc import Callable
from pathlib import Path

from seatrial.config.serve import ServeConfig
from seatrial.errors import EngineError, ServerError
from seatrial.runs import Run, new_run_path
from seatrial.serving.adapters.adapter import Adapter
from seatrial.serving.adapters.live import load, unload
from seatrial.serving.adapters.random import make_random
from seatrial.serving.client import Client
from seatrial.serving.models.catalog import local_directory
from seatrial.serving.plan import Plan, make_plan
from seatrial.serving.ports import free_port
from seatrial.serving.supervisor import Supervisor

QUESTION = "How do I list the files of a directory by size?"
TOKENS = 32


def run_demo(model: str, say: Callable[[str], None]) -> Path:
    """Serve, load, compare, unload, stop; returns the run directory."""
    config = ServeConfig(
        model_id=model, port=free_port(), enable_lora=True, max_model_len=2048, cpu_kv_cache_gib=1
    )
    plan = make_plan(config, say)
    path = new_run_path("demo", model.rstrip("/").split("/")[-1])
    with Run.start(path, "demo", plan.resolved(), versions=plan.engine.versions()) as run:
        asyncio.run(_serve_and_tour(plan, run, say))
    return path


async def _serve_and_tour(plan: Plan, run: Run, say: Callable[[str], None]) -> None:
    ready = asyncio.Event()
    supervisor = Supervisor(plan, run, say=say, on_ready=ready.set)
    serving = asyncio.create_task(supervisor.serve())
    tour = asyncio.create_task(_tour(plan, run, say, ready))
    await asyncio.wait({serving, tour}, return_when=asyncio.FIRST_COMPLETED)
    if not tour.done():
        # The server ended under the tour: it failed, which `serving` raises, or the user pressed Ctrl-C.
        tour.cancel()
        await serving
        raise KeyboardInterrupt
    supervisor.stop()
    await serving
    tour.result()


async def _tour(plan: Plan, run: Run, say: Callable[[str], None], ready: asyncio.Event) -> None:
    await ready.wait()
    [url] = plan.urls
    directory = local_directory(plan.model)
    if directory is None:
        raise EngineError(f"the weights of {plan.model} are not on this machine after serving it")
    with tempfile.TemporaryDirectory(prefix="seatrial-demo-") as scratch:
        adapter = Adapter.read(make_random(directory, Path(scratch), seed=1))
        [loaded] = await load("demo", adapter, scratch, [url])
    say(f"loaded {loaded.version} into the running server: {loaded.effect}")
    async with Client(url, timeout_s=300) as client:
        base, adapted = await asyncio.gather(
            *(_answer(client, name) for name in (plan.config.name, loaded.version))
        )
        say(f"question: {QUESTION}")
        say(f"{plan.config.name} answers: {base!r}")
        say(f"{loaded.version} answers: {adapted!r}")
        if base == adapted:
            raise ServerError("base and adapter gave the same answer")
        run.event("answers", base=base, adapter=adapted)
        await unload("demo", [url])
        cards = await client.models()
    say(f"unloaded it; the server now has: {', '.join(card.name for card in cards)}")


async def _answer(client: Client, model: str) -> str:
    messages = [{"role": "user", "content": QUESTION}]
    answer = await client.chat(model, messages, max_tokens=TOKENS, temperature=0)
    return str(answer["choices"][0]["message"]["content"])

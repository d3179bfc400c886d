"""What only a real vLLM can show: adapters that come and go under load, and replicas that die."""

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from engine_process import EngineUnderTest
from http_client import call
from served import Served, command_line, is_alive, wait_until

from seatrial.errors import AdapterRefused
from seatrial.serving import keeper
from seatrial.serving.adapters.adapter import Adapter
from seatrial.serving.adapters.live import load, unload
from seatrial.serving.adapters.random import make_random
from seatrial.serving.client import Client
from seatrial.serving.models.catalog import make_own
from seatrial.serving.ports import free_port

pytestmark = pytest.mark.vllm
PROMPT = "List every file under the directory, then count the lines of each. " * 8


async def answer(client: Client, model: str, tokens: int = 24) -> str:
    said = await client.complete(model, PROMPT, max_tokens=tokens, temperature=0, ignore_eos=True)
    return str(said["choices"][0]["text"])


async def odds(client: Client, model: str) -> dict[str, float]:
    said = await client.complete(model, PROMPT, max_tokens=1, temperature=0, logprobs=5)
    found: dict[str, float] = said["choices"][0]["logprobs"]["top_logprobs"][0]
    return found


def with_adapters(engine: EngineUnderTest, work: Any) -> Any:
    """Run `work(client, version_a, version_b)` with both adapters loaded through the gate."""

    async def run() -> Any:
        a, b = (Adapter.read(directory) for _, directory in (engine.adapter_a, engine.adapter_b))
        [first] = await load("one", a, str(a.directory), [engine.url])
        [second] = await load("two", b, str(b.directory), [engine.url])
        try:
            async with Client(engine.url, timeout_s=120) as client:
                return await work(client, first.version, second.version)
        finally:
            _, loaded = await listing(engine.url)
            for name in {card.partition("@")[0] for card in loaded}:
                await unload(name, [engine.url])

    return asyncio.run(run())


async def listing(url: str) -> tuple[str, list[str]]:
    async with Client(url) as client:
        base, adapters = await client.base_and_adapters()
        return base.name, [card.name for card in adapters]


def test_base_and_two_adapters_answer_at_once_as_they_do_alone(vllm_engine: EngineUnderTest) -> None:
    async def work(client: Client, a: str, b: str) -> None:
        names = [vllm_engine.model, a, b]
        alone = [await answer(client, name) for name in names]
        assert len(set(alone)) == 3
        together = await asyncio.gather(*(answer(client, name) for name in names * 4))
        assert together == alone * 4

    with_adapters(vllm_engine, work)


def test_a_base_in_a_batch_with_adapters_keeps_its_own_odds(vllm_engine: EngineUnderTest) -> None:
    async def work(client: Client, a: str, b: str) -> None:
        alone = await odds(client, vllm_engine.model)
        mixed = await asyncio.gather(*(odds(client, name) for name in (a, vllm_engine.model, b) * 4))
        assert all(mixed[index] == pytest.approx(alone, abs=1e-4) for index in range(1, 12, 3))

    with_adapters(vllm_engine, work)


def test_unloading_one_adapter_fails_no_other_request(vllm_engine: EngineUnderTest) -> None:
    async def work(client: Client, a: str, b: str) -> None:
        others = [vllm_engine.model, b]
        alone = [await answer(client, name, 200) for name in others]
        leaving = asyncio.create_task(answer(client, a, 200))
        running = [asyncio.create_task(answer(client, name, 200)) for name in others * 3]
        await asyncio.sleep(0.3)
        assert not any(task.done() for task in running)
        await unload("one", [vllm_engine.url])
        assert not any(task.done() for task in running)
        assert await asyncio.gather(*running) == alone * 3
        assert await leaving
        _, loaded = await listing(vllm_engine.url)
        assert sorted(name.partition("@")[0] for name in loaded) == ["two", "two"]

    with_adapters(vllm_engine, work)


def test_a_retrained_adapter_under_the_same_name_meets_no_stale_cache(vllm_engine: EngineUnderTest) -> None:
    async def work(client: Client, a: str, b: str) -> None:
        old = await odds(client, "one")
        assert old == await odds(client, a)
        retrained = Adapter.read(vllm_engine.adapter_b[1])
        [newer] = await load("one", retrained, str(retrained.directory), [vllm_engine.url])
        assert newer.version != a
        assert await odds(client, "one") == await odds(client, b) != old
        assert await odds(client, a) == old

    with_adapters(vllm_engine, work)


def test_an_adapter_that_changes_nothing_is_unloaded_again(
    vllm_engine: EngineUnderTest, tmp_path: Path
) -> None:
    # Values so small that the files pass and the answers do not change: what a wrong module mapping looks like.
    idle = Adapter.read(make_random(make_own("tiny", print), tmp_path, seed=3, scale=1e-12))
    with pytest.raises(AdapterRefused, match="answers as the base does"):
        asyncio.run(load("idle", idle, str(tmp_path), [vllm_engine.url]))
    assert asyncio.run(listing(vllm_engine.url)) == ("tiny", [])


def test_a_rank_that_only_the_server_knows_to_be_too_large_is_explained(
    vllm_engine: EngineUnderTest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    large = Adapter.read(make_random(make_own("tiny", print), tmp_path / "large", seed=3, rank=32))
    # Elsewhere, there is no note on the server that tells its limit.
    monkeypatch.setenv("SEATRIAL_HOME", str(tmp_path / "home"))
    with pytest.raises(AdapterRefused, match="greater than max_lora_rank") as refused:
        asyncio.run(load("large", large, str(large.directory), [vllm_engine.url]))
    assert refused.value.cure == "serve with max_lora_rank: 32 or more"
    assert asyncio.run(listing(vllm_engine.url)) == ("tiny", [])


def test_a_rank_above_the_servers_limit_is_refused_before_loading(
    vllm_engine: EngineUnderTest, tmp_path: Path
) -> None:
    large = make_random(make_own("tiny", print), tmp_path, seed=3, rank=32)
    done = subprocess.run(
        [sys.executable, "-m", "seatrial", "adapters", "load", "large", str(large), "--url", vllm_engine.url],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "rank 32 is larger than the server's max_lora_rank 16" in done.stderr


def test_a_dead_replica_comes_back_and_a_killed_supervisor_leaves_nothing(tmp_path: Path) -> None:
    config = {
        "model_id": "tiny",
        "port": free_port(),
        "replicas": 2,
        "max_model_len": 512,
        "cpu_kv_cache_gib": 1,
    }
    served = Served(config | {"enable_lora": True}, tmp_path / "serve")
    try:
        served.wait_ready(seconds=400)
        os.kill(served.engine_of(0), signal.SIGKILL)
        wait_until(lambda: "restarting in" in served.output())
        other = f"http://127.0.0.1:{served.ports[1]}"
        body = {"model": "tiny", "prompt": "still here", "max_tokens": 2}
        assert call(f"{other}/v1/completions", body).status == 200
        wait_until(lambda: served.output().count("replica 0: healthy") == 2, seconds=300)
        assert call(f"{served.url}/v1/completions", body).status == 200
        kept = served.keepers()[0]
        abandoned = keeper.descendants(kept)
        assert len(abandoned) >= 3  # the server, its engine core and a worker
        os.kill(kept, signal.SIGKILL)
        wait_until(lambda: not any(is_alive(pid) for pid in abandoned))
        wait_until(lambda: served.output().count(": healthy after") == 4, seconds=300)
        below = keeper.descendants(served.process.pid)
        assert sum(b"vllm" in command_line(pid).lower() for pid in below) >= 4
        served.process.kill()
        wait_until(lambda: not any(is_alive(pid) for pid in below), seconds=10)
    finally:
        served.kill_all()


def test_a_model_that_is_not_there_is_explained(tmp_path: Path) -> None:
    config = {"model_id": "no-such-org/no-such-model", "port": free_port()}
    served = Served(config, tmp_path / "serve")
    try:
        assert served.process.wait(200) == 2
        assert "the model was not found" in served.output()
        assert "cure: check model_id" in served.output()
    finally:
        served.kill_all()

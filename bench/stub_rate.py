"""Requests a second of the stub engine on one core, beside a bare aiohttp server that answers the same bytes.

The load comes from another process on another core. Both servers are asked in turn, several times, and the medians
are compared, so that what else the machine does hits both.
"""

import asyncio
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import aiohttp
from results import write_result

SECONDS = 4.0
ROUNDS = 3
CLIENTS = 32
BODY = {"model": "tiny", "messages": [{"role": "user", "content": "hello there " * 20}], "max_tokens": 16}
BARE = """
import sys
from aiohttp import web
answer = bytes.fromhex(sys.argv[1])
async def chat(request):
    await request.read()
    return web.Response(body=answer, content_type="application/json")
app = web.Application()
app.router.add_post("/v1/chat/completions", chat)
async def start():
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    print("stub ready on http://127.0.0.1:%d" % site._server.sockets[0].getsockname()[1], flush=True)
import asyncio
loop = asyncio.new_event_loop()
loop.run_until_complete(start())
loop.run_forever()
"""


@contextmanager
def server(*words: str) -> Iterator[str]:
    """A server pinned to the first core; yields its URL."""
    process = subprocess.Popen(
        [sys.executable, *words],
        stdout=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: os.sched_setaffinity(0, {0}),
    )
    assert process.stdout
    try:
        yield process.stdout.readline().removeprefix("stub ready on ").strip()
    finally:
        process.terminate()
        process.wait()


async def rate(url: str) -> float:
    """Completed requests a second with so many clients in a closed loop."""
    done = 0
    end = time.perf_counter() + SECONDS

    async def client(session: aiohttp.ClientSession) -> None:
        nonlocal done
        while time.perf_counter() < end:
            async with session.post(f"{url}/v1/chat/completions", json=BODY) as response:
                assert response.status == 200
                await response.read()
            done += 1

    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
        await asyncio.gather(*(client(session) for _ in range(CLIENTS)))
    return done / SECONDS


async def answer_of(url: str) -> bytes:
    async with (
        aiohttp.ClientSession() as session,
        session.post(f"{url}/v1/chat/completions", json=BODY) as response,
    ):
        return await response.read()


def main() -> None:
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    stub_rates, bare_rates = [], []
    with (
        server("-m", "seatrial", "stub", "--model", "tiny", "--port", "0") as stub,
        server("-c", BARE, asyncio.run(answer_of(stub)).hex()) as bare,
    ):
        for _ in range(ROUNDS):
            stub_rates.append(asyncio.run(rate(stub)))
            bare_rates.append(asyncio.run(rate(bare)))
    ours, theirs = statistics.median(stub_rates), statistics.median(bare_rates)
    result = {
        "unit": "requests/s, median of rounds; chat, not streamed, 16 tokens",
        "clients": CLIENTS,
        "stub": round(ours),
        "bare_aiohttp": round(theirs),
        "ratio": round(ours / theirs, 3),
    }
    print(write_result("stub_rate", result))
    print(f"stub {ours:.0f}/s, bare aiohttp {theirs:.0f}/s")


if __name__ == "__main__":
    main()

"""Every endpoint of a pool asked side by side: does it answer, serve that model, know its context, take tool calls?"""

import asyncio
from dataclasses import dataclass

import aiohttp

from seatrial.config.endpoints import RETRIEVAL, Endpoint, Pool
from seatrial.errors import ServerError
from seatrial.serving.client import Client, Refused

TIMEOUT_SECONDS = 4.0
TOOL = {
    "type": "function",
    "function": {
        "name": "answer",
        "description": "Give the answer.",
        "parameters": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
    },
}


@dataclass(frozen=True)
class Verdict:
    model: str
    url: str
    ok: bool
    text: str
    """What it serves, or what is wrong."""
    max_model_len: int | None = None
    tools: str = ""
    """What came of a request with tools: `ok`, why not, or nothing when it was not asked."""


async def check_pool(pool: Pool, *, timeout_s: float = TIMEOUT_SECONDS) -> list[Verdict]:
    """A verdict for each endpoint, in the pool's order, none later than `timeout_s`."""
    return await asyncio.gather(
        *(_check(model, endpoint, timeout_s) for model, endpoints in pool.items() for endpoint in endpoints)
    )


async def _check(model: str, endpoint: Endpoint, timeout_s: float) -> Verdict:
    check = _check_retrieval if model in RETRIEVAL else _check_model
    try:
        return await asyncio.wait_for(check(model, endpoint.url, timeout_s), timeout_s)
    except TimeoutError:
        return Verdict(model, endpoint.url, False, f"no answer within {timeout_s:.0f} s")
    except ServerError as error:
        return Verdict(model, endpoint.url, False, error.message)


async def _check_model(model: str, url: str, timeout_s: float) -> Verdict:
    async with Client(url, timeout_s=timeout_s) as client:
        cards = await client.models()
        wanted = model.rstrip("/")
        card = next(
            (card for card in cards if wanted in (card.name.rstrip("/"), card.root.rstrip("/"))), None
        )
        if card is None:
            served = ", ".join(card.name for card in cards) or "nothing"
            return Verdict(model, url, False, f"serves {served}, not this model")
        base = next((base for base in cards if base.name == card.parent), card)
        tools = await _try_tools(client, card.name)
        ok = tools == "ok"
        return Verdict(model, url, ok, "serves it" if ok else "tool calls fail", base.max_model_len, tools)


async def _try_tools(client: Client, model: str) -> str:
    """Whether the server takes a request with tools and reads the reply with its parser.

    Whether the model decides to call one is its own affair; a parser that does not fit fails with a 4xx or 5xx.
    """
    try:
        messages = [{"role": "user", "content": "Use the tool to answer: what is 1 + 1?"}]
        await client.chat(model, messages, tools=[TOOL], tool_choice="auto", max_tokens=16, temperature=0)
    except Refused as refusal:
        return refusal.reason
    return "ok"


async def _check_retrieval(name: str, url: str, timeout_s: float) -> Verdict:
    timeout = aiohttp.ClientTimeout(total=timeout_s)
    try:
        async with (
            aiohttp.ClientSession(timeout=timeout) as session,
            session.get(f"{url}/health") as response,
        ):
            ok = response.status == 200
            return Verdict(name, url, ok, "is warm" if ok else f"/health answered {response.status}")
    except aiohttp.ClientError as error:
        raise ServerError(f"cannot reach {url}: {error}") from None

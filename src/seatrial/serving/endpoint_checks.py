"""Every endpoint of a pool asked side by side: does it answer, serve that model, know its context, take tool calls?"""

import asyncio
from dataclasses import dataclass

import aiohttp

from seatrial.config.endpoints import RETRIEVAL, Endpoint, Pool
from seatrial.errors import ServerError
from seatrial.serving.client import Client, Refused
from seatrial.serving.resolver import AbandonableResolver

TIMEOUT_SECONDS = 4.0
PATIENCE = 0.9
"""The part of an endpoint's time that its completion may take."""
RAW_CALLS = ("<tool_call>", "[TOOL_CALLS]", "<|python_tag|>", "<function=", "<|channel|>commentary to=")
"""How models write their calls; a parser that fits takes them out of the text."""
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
        card = next((card for card in cards if card.name == model), None)
        if card is None:
            names = ", ".join(card.name for card in cards) or "nothing"
            text = f"serves {names}, not this model"
            if any(card.root.rstrip("/") == model.rstrip("/") for card in cards):
                text = f"serves it under another name, {names}: requests for this one would get a 404"
            return Verdict(model, url, False, text)
        base = next((base for base in cards if base.name == card.parent), card)
        try:
            tools = await asyncio.wait_for(_try_tools(client, card.name), timeout_s * PATIENCE)
        except TimeoutError:
            text = (
                f"serves it, but 16 tokens took longer than {timeout_s * PATIENCE:.0f} s: busy, or too slow"
            )
            return Verdict(model, url, False, text, base.max_model_len)
        ok = tools == "ok"
        return Verdict(model, url, ok, "serves it" if ok else "tool calls fail", base.max_model_len, tools)


async def _try_tools(client: Client, model: str) -> str:
    """Whether the server takes a request with tools and reads the reply with its parser.

    Whether the model decides to call one is its own affair. A parser that does not fit fails with a 4xx or 5xx, or
    leaves the call in the text as the model wrote it.
    """
    messages = [{"role": "user", "content": "Use the tool to answer: what is 1 + 1?"}]
    try:
        said = await client.chat(
            model, messages, tools=[TOOL], tool_choice="auto", max_tokens=16, temperature=0
        )
        text = str(said["choices"][0]["message"].get("content") or "")
    except Refused as refusal:
        return refusal.reason
    except (KeyError, IndexError, TypeError, AttributeError):
        return "the answer is not in OpenAI's form"
    if any(mark in text for mark in RAW_CALLS):
        return f"the call was left in the text, so another tool-call parser is needed: {text[:60]!r}"
    return "ok"


async def _check_retrieval(name: str, url: str, timeout_s: float) -> Verdict:
    timeout = aiohttp.ClientTimeout(total=timeout_s)
    try:
        connector = aiohttp.TCPConnector(resolver=AbandonableResolver())
        async with (
            aiohttp.ClientSession(timeout=timeout, connector=connector) as session,
            session.get(f"{url}/health") as response,
        ):
            ok = response.status == 200
            return Verdict(name, url, ok, "is warm" if ok else f"/health answered {response.status}")
    except aiohttp.ClientError as error:
        raise ServerError(f"cannot reach {url}: {error}") from None

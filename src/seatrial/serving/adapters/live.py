"""Adapters on running servers: loaded through the gate under a versioned name, listed, unloaded.

An adapter NAME is loaded as `NAME@hash8`, which always means the same weights, and then under its plain name, the
alias, which means the newest. Measure with the versioned name: requests in flight on an alias that is moved to a
newer version finish on the newer weights, while those on the older version's own name keep theirs.
"""

import asyncio
import contextlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from seatrial.errors import AdapterRefused, BadInput, ServerError
from seatrial.serving import registry
from seatrial.serving.adapters import journal
from seatrial.serving.adapters.adapter import Adapter, alias_of
from seatrial.serving.adapters.gate import Base, Finding, inspect, refuse_failures
from seatrial.serving.adapters.store import kept
from seatrial.serving.client import Client, ModelCard, Refused, is_local

PROMPTS = (
    "The capital of France is",
    "def fibonacci(n):\n    ",
    "$ ls -la /etc | grep",
    '{"name": "search", "arguments": {"',
)
TOP = 5
TIMEOUT_SECONDS = 300
LIST_SECONDS = 10
SAFE_VLLM = (0, 32)
"""The vLLM whose cache was seen to be keyed by an adapter's name and path; 0.25.1 was seen to go by the name alone."""
SMALLEST_CHANGE = 1e-3
"""Log-probabilities of an adapter that works differ from the base's by far more, on some prompt."""


@dataclass(frozen=True)
class Loaded:
    name: str
    version: str
    url: str
    findings: list[Finding]
    new: bool
    """Whether this version was not on the server before."""

    @property
    def effect(self) -> str:
        """What the live check saw."""
        return next(finding.text for finding in self.findings if finding.check == "live")


async def base_on(client: Client) -> Base:
    """What adapters on this server run on: from its starter's note where there is one, else as it says."""
    card, _ = await client.base_and_adapters()
    note = registry.lookup(client.url)
    return Base(note.model, note.max_lora_rank) if note else Base(card.root)


async def load(name: str, adapter: Adapter, source: str, urls: Sequence[str]) -> list[Loaded]:
    """Load on every server or on none: when one of them refuses, the others are put back as they were."""
    if not name or "@" in name or any(c.isspace() for c in name):
        raise BadInput(
            f"'{name}' cannot name an adapter", cure="use a plain name, without '@' and white space"
        )
    done: list[Loaded] = []
    moved: list[tuple[str, str | None]] = []
    """Servers whose alias was moved, and to what it pointed before."""
    try:
        for url in urls:
            async with Client(url, timeout_s=TIMEOUT_SECONDS) as client:
                done.append(await _load_on(client, name, adapter, source))
        for loaded in done:
            async with Client(loaded.url, timeout_s=TIMEOUT_SECONDS) as client:
                before, finding = await _point(client, name, _path_for(client, adapter, source))
                moved.append((loaded.url, before))
                loaded.findings.append(finding)
    except BaseException:
        for url, before in moved:
            with contextlib.suppress(ServerError):
                async with Client(url) as client:
                    await (_point(client, name, before) if before else forget(client, name))
        for loaded in done:
            if loaded.new:
                with contextlib.suppress(ServerError):
                    async with Client(loaded.url) as client:
                        await forget(client, loaded.version)
        raise
    return done


async def _load_on(client: Client, name: str, adapter: Adapter, source: str) -> Loaded:
    base = await base_on(client)
    findings = inspect(adapter, base)
    refuse_failures(adapter, findings)
    card, others = await client.base_and_adapters()
    if name == card.name:
        raise BadInput(f"'{name}' is the name of the base model on {client.url}", cure="choose another name")
    version = adapter.version_of(name)
    new = all(other.name != version for other in others)
    if new:
        try:
            await change(client, version, _path_for(client, adapter, source))
        except Refused as refusal:
            raise _explained(refusal, adapter) from None
    try:
        findings.append(await live_check(client, card.name, version))
        refuse_failures(adapter, findings)
    except BaseException:
        if new:
            with contextlib.suppress(ServerError):
                await forget(client, version)
        raise
    return Loaded(name, version, client.url, findings, new)


async def live_check(client: Client, base: str, version: str) -> Finding:
    """Whether the server's next-token odds under the adapter differ from the base's, beyond its own noise.

    An adapter whose modules the engine does not know can load and silently answer as the base.
    """
    # One model after another: a vLLM for CPU without our plugin mixes them up within a batch.
    first, again, adapted = [
        await asyncio.gather(*(_odds(client, model, prompt) for prompt in PROMPTS))
        for model in (base, base, version)
    ]
    noise = max(distance(a, b) for a, b in zip(first, again, strict=True))
    change = max(distance(a, b) for a, b in zip(first, adapted, strict=True))
    text = f"log-probabilities over {len(PROMPTS)} prompts differ from the base's by up to {change:.3g}"
    if change <= SMALLEST_CHANGE + 4 * noise:
        return Finding(
            "live",
            "failed",
            f"it answers as the base does: {text}, and the base from itself by {noise:.2g}",
            "were its target_modules trained, and does this vLLM apply LoRA to them?",
        )
    return Finding("live", "ok", text)


def distance(a: dict[str, float], b: dict[str, float]) -> float:
    """The largest difference over the tokens both name; with none in common, the likeliest one's distance."""
    common = a.keys() & b.keys()
    if not common:
        return abs(max(a.values()) - min(b.values())) + 1.0
    return max(abs(a[token] - b[token]) for token in common)


async def unload(name: str, urls: Sequence[str]) -> list[str]:
    """Unload a versioned name, or a plain one with all its versions. Returns what went, by server."""
    gone: list[str] = []
    for url in urls:
        async with Client(url) as client:
            _, loaded = await client.base_and_adapters()
            matching = [card for card in loaded if card.name == name or alias_of(card.name) == name]
            if "@" in name:
                # The alias goes with the version it points to.
                roots = {card.root for card in matching}
                matching += [card for card in loaded if card.name == alias_of(name) and card.root in roots]
            if not matching:
                known = ", ".join(card.name for card in loaded) or "none"
                raise BadInput(f"no adapter '{name}' on {client.url}", cure=f"loaded there: {known}")
            for card in matching:
                await forget(client, card.name)
                gone.append(f"{card.name} on {client.url}")
    return gone


async def listing(urls: Sequence[str]) -> list[tuple[str, ModelCard, list[ModelCard]]]:
    """For each server its URL, its base and its adapters."""
    found = []
    for url in urls:
        async with Client(url, timeout_s=LIST_SECONDS) as client:
            base, adapters = await client.base_and_adapters()
            found.append((client.url, base, adapters))
    return found


async def _point(client: Client, alias: str, path: str) -> tuple[str | None, Finding]:
    """Make the alias mean the adapter at `path`, without a moment in which it means something else or nothing.

    Where the server's cache would answer for the new weights from the old ones', the alias is taken away instead.
    Returns the path that it meant before, and what became of it.
    """
    _, loaded = await client.base_and_adapters()
    before = next((card.root for card in loaded if card.name == alias), None)
    if before is not None and before != path and not tells_versions_apart(await client.version()):
        await forget(client, alias)
        text = f"'{alias}' was unloaded: this vLLM would answer for it from the old version's cache; use the version"
        return before, Finding("alias", "skipped", text)
    if before != path:
        await change(client, alias, path, in_place=before is not None)
    return before, Finding("alias", "ok", f"'{alias}' means this version")


def tells_versions_apart(version: str) -> bool:
    """Whether this vLLM's prefix cache tells adapters of one name and different paths apart."""
    numbers = re.match(r"(\d+)\.(\d+)", version)
    return numbers is not None and tuple(map(int, numbers.groups())) >= SAFE_VLLM


async def change(client: Client, name: str, path: str, *, in_place: bool = False) -> None:
    """Make `name` mean the adapter at `path`."""
    await client.load_adapter(name, path, in_place=in_place)
    journal.write(client.url, name, path)


async def forget(client: Client, name: str) -> None:
    """Unload what may be there. Noted first: a server that dies under this must not get it back."""
    journal.write(client.url, name, None)
    try:
        await client.unload_adapter(name)
    except Refused as refusal:
        if refusal.status != 404:
            raise


async def _odds(client: Client, model: str, prompt: str) -> dict[str, float]:
    answer = await client.complete(model, prompt, max_tokens=1, temperature=0, logprobs=TOP)
    try:
        odds: dict[str, Any] = answer["choices"][0]["logprobs"]["top_logprobs"][0]
    except (KeyError, IndexError, TypeError):
        raise ServerError(
            f"{client.url} gave no log-probabilities, so the adapter cannot be checked"
        ) from None
    return {token: float(value) for token, value in odds.items()}


def _path_for(client: Client, adapter: Adapter, source: str) -> str:
    """Where the server finds the adapter: our stored copy on this machine, else what the user named."""
    if is_local(client.url):
        return str(kept(adapter))
    return str(adapter.directory) if Path(source).expanduser().is_dir() else source


def _explained(refusal: Refused, adapter: Adapter) -> Exception:
    if "max_lora_rank" in refusal.reason:
        return AdapterRefused(
            f"the server refused {adapter.directory}: {refusal.reason}",
            cure=f"serve with max_lora_rank: {adapter.rank} or more",
        )
    if refusal.status == 404 and "Not Found" in refusal.reason:
        return BadInput(
            f"{refusal.message}: this server does not load adapters while it runs",
            cure="serve with enable_lora: true",
        )
    return AdapterRefused(f"the server refused {adapter.directory}: {refusal.reason}")

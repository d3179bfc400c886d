"""What adapters a server should have: as it was started, as it was last seen, as our commands changed it since.

A server forgets its adapters when it dies. Its supervisor keeps this memory of them and brings the next one back.
"""

import contextlib
import time
from collections.abc import Mapping

from seatrial.errors import ServerError
from seatrial.serving.adapters import journal
from seatrial.serving.adapters.live import change, forget
from seatrial.serving.client import Client


class Memory:
    def __init__(self, url: str, adapters: Mapping[str, str]) -> None:
        self.url = url
        self.wanted = dict(adapters)
        """Name to path."""
        self._looked = time.time()

    async def look(self, client: Client) -> bool:
        """Take over what the server has now; returns whether that is news."""
        moment = time.time()
        _, cards = await client.base_and_adapters()
        loaded = {card.name: card.root for card in cards}
        self._looked = moment
        news = loaded != self.wanted
        self.wanted = loaded
        return news

    def catch_up(self) -> None:
        """Add what our commands did since the last look, now that the server is dead and cannot be asked."""
        with contextlib.suppress(OSError):
            for name, path in journal.since(self.url, self._looked):
                if path is None:
                    self.wanted.pop(name, None)
                else:
                    self.wanted[name] = path

    async def restore(self, client: Client) -> tuple[list[str], dict[str, str]]:
        """Make the server's adapters those that are wanted; returns what it has of them, and what failed and why."""
        _, cards = await client.base_and_adapters()
        loaded = {card.name: card.root for card in cards}
        failed: dict[str, str] = {}
        for name in loaded.keys() - self.wanted.keys():
            await forget(client, name)
        for name, path in self.wanted.items():
            if loaded.get(name) != path:
                try:
                    await change(client, name, path, in_place=name in loaded)
                except ServerError as error:
                    failed[name] = error.message
        return [name for name in self.wanted if name not in failed], failed

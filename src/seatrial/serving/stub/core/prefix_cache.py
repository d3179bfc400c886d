"""The key-value cache in blocks: what is pinned, what is kept for a prefix to come back, what is evicted.

A full block is known by a hash of its tokens and of all that stands before it, so equal hashes mean equal
prefixes. The first link of the chain is the adapter's name and path, since the same tokens give other keys and
values under other weights. A block nobody uses stays findable until its room is needed, least recently used
first.
"""

from collections import OrderedDict
from collections.abc import Sequence

Adapter = tuple[str, str]
"""The name and the path of a LoRA adapter."""


def block_hashes(tokens: Sequence[int], block_size: int, adapter: Adapter | None = None) -> list[int]:
    """One hash for each full block of `tokens`, each including the one before it."""
    link = hash(("lora", *adapter)) if adapter else 0
    chain = []
    for end in range(block_size, len(tokens) + 1, block_size):
        link = hash((link, *tokens[end - block_size : end]))
        chain.append(link)
    return chain


class PrefixCache:
    def __init__(self, blocks: int, block_size: int, *, keeps_prefixes: bool = True) -> None:
        assert blocks > 1
        assert block_size > 0
        self.blocks = blocks - 1  # vLLM sets one block aside as its null block
        self.block_size = block_size
        self.keeps_prefixes = keeps_prefixes
        self.queries = 0
        """Tokens looked up, over all requests."""
        self.hits = 0
        """Tokens of these that were found."""
        self._users: dict[int, int] = {}
        self._idle: OrderedDict[int, None] = OrderedDict()
        self._private = 0

    @property
    def used(self) -> int:
        return self._private + len(self._users) - len(self._idle)

    @property
    def free(self) -> int:
        """Blocks that can be taken, those kept for a prefix to come back included."""
        return self.blocks - self.used

    @property
    def usage(self) -> float:
        return self.used / self.blocks

    @property
    def kept(self) -> int:
        """Full blocks that a prefix would find."""
        return len(self._users)

    def match(self, hashes: Sequence[int]) -> int:
        """How many of the leading blocks are here."""
        users = self._users
        for found, block in enumerate(hashes):
            if block not in users:
                return found
        return len(hashes)

    def room_for(self, needed: int, matched: Sequence[int]) -> bool:
        """Whether `needed` new blocks can be taken once the `matched` ones are pinned."""
        idle = sum(block in self._idle for block in matched)
        return needed <= self.free - idle

    def pin(self, hashes: Sequence[int]) -> None:
        for block in hashes:
            self._users[block] += 1
            self._idle.pop(block, None)

    def take(self, count: int) -> None:
        """Give out `count` blocks that hold no full prefix yet."""
        assert count <= self.free
        self._private += count
        while self._private + len(self._users) > self.blocks:
            evicted, _ = self._idle.popitem(last=False)
            del self._users[evicted]

    def publish(self, block: int) -> bool:
        """Make a taken block findable. False when an equal one already is: then both copies stay."""
        if not self.keeps_prefixes or block in self._users:
            return False
        self._private -= 1
        self._users[block] = 1
        return True

    def release(self, hashes: Sequence[int], private: int) -> None:
        self._private -= private
        # From the tail: the end of a conversation is of less use to others than its beginning.
        for block in reversed(hashes):
            self._users[block] -= 1
            if not self._users[block]:
                self._idle[block] = None

    def count(self, queried: int, hit: int) -> None:
        self.queries += queried
        self.hits += hit

    def reset(self) -> bool:
        """Forget every prefix; refused while blocks are in use, as vLLM does."""
        if self.used:
            return False
        self._users.clear()
        self._idle.clear()
        return True

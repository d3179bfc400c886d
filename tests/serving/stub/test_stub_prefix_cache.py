from seatrial.serving.stub.core.prefix_cache import PrefixCache, block_hashes

TOKENS = list(range(12))


def cache_of(blocks: int) -> PrefixCache:
    return PrefixCache(blocks + 1, 4)  # one is vLLM's null block


def put(cache: PrefixCache, hashes: list[int]) -> None:
    """Compute these blocks and leave them."""
    cache.take(len(hashes))
    assert all(cache.publish(block) for block in hashes)
    cache.release(hashes, 0)


def test_only_full_blocks_have_a_hash() -> None:
    assert len(block_hashes(TOKENS[:11], 4)) == 2


def test_a_hash_includes_all_that_stands_before() -> None:
    first, second, _ = block_hashes(TOKENS, 4)
    other = block_hashes([99, *TOKENS[1:]], 4)
    assert first != other[0]
    assert second != other[1]
    assert block_hashes([*TOKENS[:8], 99, 99, 99, 99], 4)[:2] == [first, second]


def test_an_adapters_name_and_path_are_part_of_the_hash() -> None:
    adapters = (None, ("a", "/one"), ("b", "/one"), ("a", "/two"))
    chains = [tuple(block_hashes(TOKENS, 4, adapter)) for adapter in adapters]
    assert len({block for chain in chains for block in chain}) == 4 * 3


def test_a_left_prefix_is_found_again() -> None:
    cache, hashes = cache_of(5), block_hashes(TOKENS, 4)
    put(cache, hashes)
    assert cache.match(hashes) == 3
    assert cache.match(block_hashes([*TOKENS[:4], 99, 99, 99, 99], 4)) == 1
    assert (cache.used, cache.free, cache.kept) == (0, 5, 3)


def test_the_least_recently_used_goes_first_and_a_tail_before_its_head() -> None:
    cache = cache_of(4)
    old, new = block_hashes(TOKENS[:8], 4), block_hashes([50, *TOKENS[1:8]], 4)
    put(cache, old)
    put(cache, new)
    cache.pin(old)  # used again, so `new` is now the older one
    cache.release(old, 0)
    cache.take(1)
    assert (cache.match(old), cache.match(new)) == (2, 1)
    cache.take(2)
    assert (cache.match(old), cache.match(new)) == (1, 0)


def test_a_pinned_block_is_not_evicted() -> None:
    cache, hashes = cache_of(3), block_hashes(TOKENS, 4)
    put(cache, hashes)
    cache.pin(hashes[:2])
    assert cache.free == 1
    assert cache.room_for(1, [])
    assert not cache.room_for(1, hashes[2:])
    cache.take(1)
    assert cache.match(hashes) == 2


def test_an_equal_block_stays_private() -> None:
    cache, hashes = cache_of(3), block_hashes(TOKENS[:4], 4)
    cache.take(2)
    assert cache.publish(hashes[0])
    assert not cache.publish(hashes[0])
    assert cache.used == 2
    cache.release([], 1)
    cache.release(hashes, 0)
    assert (cache.used, cache.kept) == (0, 1)


def test_a_reset_waits_until_nothing_is_used() -> None:
    cache, hashes = cache_of(3), block_hashes(TOKENS, 4)
    put(cache, hashes)
    cache.pin(hashes)
    assert not cache.reset()
    cache.release(hashes, 0)
    assert cache.reset()
    assert cache.match(hashes) == 0


def test_without_prefix_caching_nothing_is_kept() -> None:
    cache = PrefixCache(4, 4, keeps_prefixes=False)
    cache.take(1)
    assert not cache.publish(1)
    cache.release([], 1)
    assert (cache.kept, cache.free) == (0, 3)

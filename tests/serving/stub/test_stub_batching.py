import random
from collections.abc import Iterable
from typing import Any

import pytest

from seatrial.serving.stub.core.batching import Batch
from seatrial.serving.stub.core.costs import Costs
from seatrial.serving.stub.core.prefix_cache import Adapter, PrefixCache
from seatrial.serving.stub.core.sequence import Sequence

BLOCK = 4
SECOND_A_STEP = Costs(step=1.0)


def batch_of(blocks: int = 100, costs: Costs = SECOND_A_STEP, **limits: Any) -> Batch:
    return Batch(PrefixCache(blocks + 1, BLOCK), costs, **limits)


def sequence(
    prompt: Iterable[int], output: int, adapter: Adapter | None = None, priority: int = 0
) -> Sequence:
    return Sequence.of(list(prompt), [10_000 + n for n in range(output)], BLOCK, adapter, priority)


def run(batch: Batch, now: float = 0.0) -> tuple[float, list[Sequence]]:
    """Step until all is done: the time at the end, and who finished, in order."""
    finished: list[Sequence] = []
    while step := batch.begin(now):
        now = step.ends
        finished += [gain.sequence for gain in batch.end(step) if gain.done]
    assert batch.cache.used == 0
    return now, finished


def run_all(batch: Batch, *sequences: Sequence, now: float = 0.0) -> tuple[float, list[Sequence]]:
    for each in sequences:
        batch.add(each, now)
    return run(batch, now)


def test_a_prompt_gives_its_first_token_in_the_step_that_completes_it() -> None:
    batch, one = batch_of(), sequence(range(10), 3)
    ends, _ = run_all(batch, one)
    assert (one.first_token, one.last_token, ends) == (1.0, 3.0, 3.0)


def test_costs_make_time() -> None:
    costs = Costs(step=1.0, prefill_token=0.1, sequence=0.01, context_token=0.001)
    batch = batch_of(costs=costs)
    one = sequence(range(10), 2)
    run_all(batch, one)
    assert one.first_token == pytest.approx(1.0 + 10 * 0.1 + 0.01 + 10 * 0.001)
    assert one.last_token - one.first_token == pytest.approx(1.0 + 0.01 + 11 * 0.001)


def test_without_costs_no_time_passes_and_one_step_is_enough() -> None:
    batch = batch_of(costs=Costs())
    batch.add(sequence(range(10), 50), 7.0)
    step = batch.begin(7.0)
    assert step
    assert step.seconds == 0
    (gain,) = batch.end(step)
    assert (gain.tokens, gain.first, gain.done, gain.waited) == (50, True, True, 0.0)
    assert batch.begin(7.0) is None


def test_a_long_prompt_is_computed_in_chunks() -> None:
    batch, one = batch_of(max_tokens=8), sequence(range(20), 1)
    run_all(batch, one)
    assert one.first_token == 3.0


def test_decoding_goes_on_beside_a_long_prompt() -> None:
    batch = batch_of(max_tokens=8)
    short, long = sequence(range(4), 10), sequence(range(100, 160), 1)
    run_all(batch, short, long)
    assert short.last_token == 10.0
    assert long.first_token > 8.0


def test_what_waits_is_admitted_as_places_become_free() -> None:
    batch = batch_of(max_sequences=2)
    sequences = [sequence(range(n * 10, n * 10 + 4), 2) for n in range(4)]
    ends, finished = run_all(batch, *sequences)
    assert finished == sequences
    assert ends == 4.0
    assert [each.admitted for each in sequences] == [0.0, 0.0, 2.0, 2.0]


def test_cache_hits_grow_with_a_conversation() -> None:
    batch = batch_of()
    conversation: list[int] = list(range(9))
    cached = []
    for turn in range(4):
        one = sequence(conversation, 6)
        run_all(batch, one, now=100.0 * turn)
        cached.append(one.cached)
        conversation += [10_000 + n for n in range(6)] + [turn] * 3
    # The last token of an answer has no keys and values yet, so each turn finds the full blocks before it.
    assert cached == [0, 12, 20, 32]
    assert batch.cache.hits == sum(cached)
    assert batch.cache.queries == 9 + 18 + 27 + 36


def test_a_prompt_wholly_in_the_cache_still_computes_its_last_token() -> None:
    batch = batch_of()
    run_all(batch, sequence(range(8), 1))
    again = sequence(range(8), 1)
    run_all(batch, again)
    assert again.cached == 4


def test_equal_prompts_in_one_step_share_their_blocks() -> None:
    batch = batch_of()
    first, second = sequence(range(9), 1), sequence(range(9), 1)
    run_all(batch, first, second)
    assert (first.cached, second.cached) == (0, 8)


def test_adapters_share_no_blocks() -> None:
    batch = batch_of()
    for adapter in (None, ("a", "/one"), ("b", "/one"), ("a", "/two")):
        one = sequence(range(12), 1, adapter)
        run_all(batch, one)
        assert one.cached == 0


def test_no_more_adapters_at_once_than_allowed() -> None:
    batch = batch_of(max_adapters=1)
    a, b, base = sequence([1], 3, ("a", "/a")), sequence([2], 3, ("b", "/b")), sequence([3], 3)
    run_all(batch, a, b, base)
    assert (a.admitted, base.admitted, b.admitted) == (0.0, 0.0, 3.0)


def test_the_newest_is_preempted_when_blocks_run_out_and_ends_well() -> None:
    batch = batch_of(blocks=6)
    first, second = sequence(range(8), 12), sequence(range(100, 108), 12)
    _, finished = run_all(batch, first, second)
    assert finished == [first, second]
    assert (first.preemptions, batch.preemptions) == (0, second.preemptions)
    assert second.preemptions > 0
    assert (first.produced, second.produced) == (12, 12)
    assert first.last_token == 12.0
    assert second.last_token > 12.0


def test_a_preempted_sequence_counts_in_the_hit_rate_once() -> None:
    batch = batch_of(blocks=6)
    run_all(batch, sequence(range(8), 12), sequence(range(100, 108), 12))
    assert batch.cache.queries == 16


def test_first_come_is_first_served_whatever_its_priority() -> None:
    batch = batch_of(max_sequences=1)
    late, soon = sequence([1], 1, priority=9), sequence([2], 1, priority=1)
    assert run_all(batch, late, soon)[1] == [late, soon]


def test_a_lower_priority_number_goes_first_and_is_preempted_last() -> None:
    batch = Batch(PrefixCache(7, BLOCK), SECOND_A_STEP, max_sequences=2, by_priority=True)
    low, high = sequence(range(8), 12, priority=5), sequence(range(100, 108), 12, priority=1)
    middle = sequence([7], 1, priority=3)
    _, finished = run_all(batch, low, high, middle)
    assert finished == [middle, high, low]
    assert (high.preemptions, middle.preemptions) == (0, 0)


def test_an_aborted_sequence_gives_back_its_blocks() -> None:
    batch = batch_of(max_sequences=1)
    running, waiting, last = sequence(range(9), 5), sequence(range(9), 5), sequence([1], 1)
    for each in (running, waiting, last):
        batch.add(each, 0.0)
    step = batch.begin(0.0)
    assert step
    assert batch.cache.used == 3
    batch.abort(running)
    batch.abort(waiting)
    assert (batch.cache.used, len(batch.waiting)) == (0, 1)
    assert batch.end(step) == []
    assert run(batch, 1.0)[1] == [last]


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("costs", [Costs(), SECOND_A_STEP])
def test_any_load_is_served_whole_and_leaves_no_block_behind(seed: int, costs: Costs) -> None:
    dice = random.Random(seed)
    cache = PrefixCache(dice.randint(9, 30), BLOCK)
    batch = Batch(
        cache, costs, max_sequences=dice.randint(1, 8), max_tokens=dice.randint(1, 40), max_adapters=1
    )
    alive: list[Sequence] = []
    now = 0.0
    for _ in range(200):
        if dice.random() < 0.3:
            shared = list(range(dice.randint(1, 20)))
            adapter = dice.choice([None, ("a", "/a"), ("b", "/b")])
            alive.append(sequence(shared, dice.randint(1, 12), adapter))
            batch.add(alive[-1], now)
        if step := batch.begin(now):
            now = step.ends
            assert 0 < cache.used <= cache.blocks
            if alive and dice.random() < 0.1:
                batch.abort(victim := dice.choice(alive))
                alive.remove(victim)
            done = [gain.sequence for gain in batch.end(step) if gain.done]
            alive = [each for each in alive if each not in done]
    _, finished = run(batch, now)
    assert set(finished) == set(alive)
    assert all(each.produced == each.output_tokens for each in finished)

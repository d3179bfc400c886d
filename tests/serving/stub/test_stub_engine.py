import asyncio
from collections.abc import Callable

from seatrial.serving.stub.core.batching import Batch
from seatrial.serving.stub.core.costs import Costs
from seatrial.serving.stub.core.prefix_cache import PrefixCache
from seatrial.serving.stub.core.sequence import Sequence
from seatrial.serving.stub.core.step import Gain
from seatrial.serving.stub.engine import Engine
from seatrial.serving.stub.metrics import Metrics


def engine_of(costs: Costs) -> Engine:
    return Engine(Batch(PrefixCache(101, 4), costs), Metrics("tiny"))


def sequence(tokens: int) -> Sequence:
    return Sequence.of(range(9), range(tokens), 4)


async def finished(engine: Engine, one: Sequence, heard: Callable[[Gain], None] = lambda _: None) -> None:
    done = asyncio.Event()

    def listen(gain: Gain) -> None:
        heard(gain)
        if gain.done:
            done.set()

    engine.submit(one, "length", listen)
    await done.wait()


def test_steps_take_the_time_their_costs_say() -> None:
    async def main() -> tuple[float, list[int]]:
        loop, gains = asyncio.get_running_loop(), []
        engine, began = engine_of(Costs(step=0.01)), loop.time()
        await finished(engine, sequence(20), lambda gain: gains.append(gain.tokens))
        return loop.time() - began, gains

    took, gains = asyncio.run(main())
    assert gains == [1] * 20
    assert 0.2 <= took < 0.5


def test_an_idle_engine_rests_and_wakes_again() -> None:
    async def main() -> None:
        engine = engine_of(Costs())
        for _ in range(3):
            await finished(engine, sequence(5))
            await asyncio.sleep(0)
        assert engine.batch.cache.hits == 16

    asyncio.run(main())


def test_an_aborted_sequence_is_heard_of_no_more_and_holds_nothing() -> None:
    async def main() -> None:
        engine = engine_of(Costs(step=0.005))
        heard: list[Gain] = []
        gone, stays = sequence(300), sequence(5)
        engine.submit(gone, "length", heard.append)
        await asyncio.sleep(0.02)
        assert heard
        engine.abort(gone)
        count, used = len(heard), engine.batch.cache.used
        await finished(engine, stays)
        engine.abort(stays)  # done already: nothing to do
        assert (len(heard), used) == (count, 0)
        assert 'finished_reason="abort",model_name="tiny"} 1.0' in engine.metrics.text(engine.batch)

    asyncio.run(main())

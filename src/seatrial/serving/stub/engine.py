"""The engine on the event loop: runs the batch's steps in real time, and rests while there is nothing to do."""

import asyncio
from collections.abc import Callable

from seatrial.serving.stub.core.batching import Batch
from seatrial.serving.stub.core.sequence import Sequence
from seatrial.serving.stub.core.step import Gain, Step
from seatrial.serving.stub.metrics import Metrics

LARGEST_LAG = 0.05

Listener = Callable[[Gain], None]


class Engine:
    """Callbacks instead of a task: a request costs no more than the steps it takes part in."""

    def __init__(self, batch: Batch, metrics: Metrics) -> None:
        self.batch = batch
        self.metrics = metrics
        self._loop = asyncio.get_running_loop()
        self._listeners: dict[Sequence, tuple[Listener, str]] = {}
        self._awake = False

    def submit(self, sequence: Sequence, finish: str, listener: Listener) -> None:
        """Run `sequence`; it will finish for the reason `finish`. The listener hears of every gain."""
        now = self._loop.time()
        self.batch.add(sequence, now)
        self._listeners[sequence] = (listener, finish)
        if not self._awake:
            self._awake = True
            # Not at once: requests that came in together shall be in one step.
            self._loop.call_soon(self._begin, now)

    def abort(self, sequence: Sequence) -> None:
        """Stop a sequence whose client has gone; one that is done already is left alone."""
        if self._listeners.pop(sequence, None):
            self.batch.abort(sequence)
            self.metrics.aborted()

    def _begin(self, now: float) -> None:
        step = self.batch.begin(now)
        if step is None:
            self._awake = False
        elif step.seconds:
            self._loop.call_at(step.ends, self._end, step)
        else:
            self._end(step)

    def _end(self, step: Step) -> None:
        gains = self.batch.end(step)
        self.metrics.gained(gains)
        for gain in gains:
            if gain.done:
                listener, finish = self._listeners.pop(gain.sequence)
                self.metrics.finished(gain, finish)
            else:
                listener, _ = self._listeners[gain.sequence]
            listener(gain)
        # The next step begins when this one was due to end, however late the timer fired: else each step would
        # last longer by that. Unless the machine cannot keep up at all; then time lost is lost.
        begins = max(step.ends, self._loop.time() - LARGEST_LAG)
        self._loop.call_soon(self._begin, begins)

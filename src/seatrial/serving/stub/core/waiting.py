"""Who waits for a place in the batch, in the order in which they will get one."""

import heapq

from seatrial.serving.stub.core.sequence import Sequence


class WaitingQueue:
    """First come, first served, or by priority and then by arrival.

    A preempted sequence keeps its arrival, so it comes back before all that arrived after it.
    """

    def __init__(self, *, by_priority: bool = False) -> None:
        self._by_priority = by_priority
        self._heap: list[tuple[int, int, Sequence]] = []
        self._gone: set[int] = set()

    def __len__(self) -> int:
        return len(self._heap) - len(self._gone)

    def push(self, sequence: Sequence) -> None:
        heapq.heappush(self._heap, (*self.rank(sequence), sequence))

    def pop(self) -> Sequence | None:
        while self._heap:
            sequence = heapq.heappop(self._heap)[2]
            if sequence.number not in self._gone:
                return sequence
            self._gone.remove(sequence.number)
        return None

    def remove(self, sequence: Sequence) -> None:
        """Only marks it: the heap drops it when it comes up."""
        self._gone.add(sequence.number)

    def rank(self, sequence: Sequence) -> tuple[int, int]:
        return (sequence.priority if self._by_priority else 0, sequence.number)

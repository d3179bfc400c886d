"""A Prometheus histogram: counts by bucket, their sum, and its text."""

from bisect import bisect_left
from collections.abc import Iterator, Sequence


def bounds(text: str) -> tuple[float, ...]:
    return tuple(float(bound) for bound in text.split())


# vLLM's own, so that a quantile computed from them is as coarse here as it is there.
FIRST_TOKEN = bounds(
    "0.001 0.005 0.01 0.02 0.04 0.06 0.08 0.1 0.25 0.5 0.75 1 2.5 5 7.5 10 20 40 80 160 640 2560"
)
BETWEEN_TOKENS = bounds("0.01 0.025 0.05 0.075 0.1 0.15 0.2 0.3 0.4 0.5 0.75 1 2.5 5 7.5 10 20 40 80")
REQUEST = bounds("0.3 0.5 0.8 1 1.5 2 2.5 5 10 15 20 30 40 50 60 120 240 480 960 1920 7680")


class Histogram:
    def __init__(self, bounds: Sequence[float]) -> None:
        self.sum = 0.0
        self.count = 0
        self._bounds = bounds
        self._counts = [0] * (len(bounds) + 1)

    def observe(self, value: float, times: int = 1) -> None:
        self.sum += value * times
        self.count += times
        self._counts[bisect_left(self._bounds, value)] += times

    def lines(self, name: str, engine: str, model: str) -> Iterator[str]:
        reached = 0
        for bound, count in zip([*map(str, self._bounds), "+Inf"], self._counts, strict=True):
            reached += count
            yield f'{name}_bucket{{{engine},le="{bound}",{model}}} {float(reached)}'
        yield f"{name}_count{{{engine},{model}}} {float(self.count)}"
        yield f"{name}_sum{{{engine},{model}}} {self.sum}"

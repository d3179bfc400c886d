"""How often a replica may be started again, and how long to wait before. The caller owns the clock."""

from collections import deque

from seatrial.config.serve import RestartPolicy


class Restarts:
    def __init__(self, policy: RestartPolicy) -> None:
        self._policy = policy
        self._times: deque[float] = deque()

    def next_delay(self, now: float) -> float | None:
        """Seconds to wait before the next start, or None when the limit is reached."""
        while self._times and now - self._times[0] > self._policy.window_s:
            self._times.popleft()
        if len(self._times) >= self._policy.limit:
            return None
        delay = min(self._policy.first_delay_s * 2 ** len(self._times), self._policy.max_delay_s)
        self._times.append(now)
        return float(delay)

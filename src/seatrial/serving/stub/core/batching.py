"""Continuous batching: what the engine computes in its next step. Pure: the caller owns the clock.

As in vLLM there is no separate phase for prompts and for answers. A sequence has tokens that are known and
tokens that are computed; a step computes the difference, as far as its token budget goes, and a sequence whose
tokens are all computed gains a new one.
"""

import sys

from seatrial.serving.stub.core.costs import Costs
from seatrial.serving.stub.core.prefix_cache import PrefixCache
from seatrial.serving.stub.core.sequence import Sequence
from seatrial.serving.stub.core.step import Gain, Share, Step
from seatrial.serving.stub.core.waiting import WaitingQueue


class Batch:
    def __init__(
        self,
        cache: PrefixCache,
        costs: Costs | None = None,
        *,
        max_sequences: int = 256,
        max_tokens: int = 8192,
        max_adapters: int = 1,
        by_priority: bool = False,
    ) -> None:
        self.cache = cache
        self.costs = costs or Costs()
        self.running: list[Sequence] = []
        self.waiting = WaitingQueue(by_priority=by_priority)
        self.preemptions = 0
        self._max_sequences = max_sequences
        self._max_tokens = max_tokens
        self._max_adapters = max_adapters
        self._arrivals = 0
        # Where a step takes no time nobody can tell one token a step from a whole answer a step.
        self._most_gained = sys.maxsize if self.costs.none else 1

    def add(self, sequence: Sequence, now: float) -> None:
        blocks = -(-(sequence.prompt_tokens + sequence.output_tokens) // self.cache.block_size)
        assert blocks <= self.cache.blocks, "a sequence larger than the whole cache could never run"
        sequence.number = self._arrivals
        sequence.arrived = now
        self._arrivals += 1
        self.waiting.push(sequence)

    def abort(self, sequence: Sequence) -> None:
        """Take out a sequence that is not done, also in the middle of a step."""
        if sequence in self.running:
            self.running.remove(sequence)
            self._release(sequence)
        else:
            self.waiting.remove(sequence)

    def begin(self, now: float) -> Step | None:
        """Schedule the step that starts `now`; None when there is nothing to do. `end` it before the next."""
        shares: dict[Sequence, Share] = {}
        budget, preempted = self._continue(shares)
        if not preempted:
            self._admit(shares, budget, now)
        if not shares:
            return None
        seconds = self.costs.seconds(
            prefill_tokens=sum(share.prefill for share in shares.values()),
            sequences=len(shares),
            context_tokens=sum(sequence.computed for sequence in shares),
        )
        return Step(now, seconds, shares)

    def end(self, step: Step) -> list[Gain]:
        """Hand out what the step produced; who is done gives back its blocks."""
        gains: list[Gain] = []
        ends, finished = step.ends, False
        for sequence, share in step.shares.items():
            if not share.gain or not sequence.held:  # who was aborted meanwhile holds nothing
                continue
            first = not sequence.produced
            waited = ends - (sequence.arrived if first else sequence.last_token)
            sequence.produced += share.gain
            sequence.last_token = ends
            if first:
                sequence.first_token = ends
            done = sequence.done
            if done:
                finished = True
                self._release(sequence)
            gains.append(Gain(sequence, share.gain, max(waited, 0.0), first, done))
        if finished:
            self.running = [sequence for sequence in self.running if not sequence.done]
        return gains

    def _continue(self, shares: dict[Sequence, Share]) -> tuple[int, bool]:
        """Give each running sequence its share; those that came last make room for the others."""
        budget, preempted, index = self._max_tokens, False, 0
        while index < len(self.running) and budget:
            sequence = self.running[index]
            share = self._share(sequence, sequence.computed, budget)
            needed = self._blocks(sequence.computed, share) - sequence.held
            while needed and needed > self.cache.free:
                preempted = True
                victim = max(self.running, key=self.waiting.rank)
                # Under `priority` the victim may stand before this sequence and have its share already.
                if (given := shares.pop(victim, None)) is not None:
                    budget += given.compute
                    index -= 1
                self._preempt(victim)
                if victim is sequence:
                    break
            else:
                self._grant(sequence, share, needed)
                shares[sequence] = share
                budget -= share.compute
                index += 1
        return budget, preempted

    def _admit(self, shares: dict[Sequence, Share], budget: int, now: float) -> None:
        adapters = {sequence.adapter for sequence in self.running if sequence.adapter}
        passed_over: list[Sequence] = []
        while budget and len(self.running) < self._max_sequences and (sequence := self.waiting.pop()):
            adapter = sequence.adapter
            if adapter and adapter not in adapters and len(adapters) >= self._max_adapters:
                passed_over.append(sequence)
                continue
            # At least one token is always computed: the last one's logits give the next token.
            hashes = sequence.hashes[: (sequence.known - 1) // self.cache.block_size]
            found = hashes[: self.cache.match(hashes)]
            cached = len(found) * self.cache.block_size
            share = self._share(sequence, cached, budget)
            needed = self._blocks(cached, share) - len(found)
            if not self.cache.room_for(needed, found):
                passed_over.append(sequence)
                break
            self.cache.pin(found)
            sequence.shared, sequence.held, sequence.sealed = found, len(found), len(found)
            sequence.computed = cached
            if sequence.admitted < sequence.arrived:
                sequence.admitted, sequence.cached = max(now, sequence.arrived), cached
                self.cache.count(sequence.known, cached)
            self._grant(sequence, share, needed)
            self.running.append(sequence)
            if adapter:
                adapters.add(adapter)
            shares[sequence] = share
            budget -= share.compute
        for sequence in passed_over:
            self.waiting.push(sequence)

    def _share(self, sequence: Sequence, computed: int, budget: int) -> Share:
        compute = min(sequence.known - computed, budget)
        complete = computed + compute == sequence.known
        gain = min(self._most_gained, sequence.output_tokens - sequence.produced) if complete else 0
        decoding = sequence.produced > 0 and compute == 1 and complete
        return Share(compute, gain, 0 if decoding else compute)

    def _blocks(self, computed: int, share: Share) -> int:
        # Of the tokens gained the last is not computed before the next step.
        return -(-(computed + share.compute + max(share.gain - 1, 0)) // self.cache.block_size)

    def _grant(self, sequence: Sequence, share: Share, needed: int) -> None:
        if needed:
            self.cache.take(needed)
            sequence.held += needed
        sequence.computed += share.compute + max(share.gain - 1, 0)
        full = sequence.computed // self.cache.block_size
        if full > sequence.sealed:
            for block in sequence.hashes[sequence.sealed : full]:
                if self.cache.publish(block):
                    sequence.shared.append(block)
            sequence.sealed = full

    def _preempt(self, sequence: Sequence) -> None:
        self.running.remove(sequence)
        self._release(sequence)
        sequence.computed = 0
        sequence.preemptions += 1
        self.preemptions += 1
        self.waiting.push(sequence)

    def _release(self, sequence: Sequence) -> None:
        self.cache.release(sequence.shared, sequence.held - len(sequence.shared))
        sequence.shared, sequence.held, sequence.sealed = [], 0, 0

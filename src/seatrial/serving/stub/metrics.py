"""What vLLM tells Prometheus, under vLLM's names and labels."""

from collections import Counter
from collections.abc import Iterator, Sequence

from seatrial.serving.stub.core.batching import Batch
from seatrial.serving.stub.core.step import Gain
from seatrial.serving.stub.histogram import BETWEEN_TOKENS, FIRST_TOKEN, REQUEST, Histogram

ENGINE = 'engine="0"'
FINISHES = ("stop", "length", "abort", "error", "repetition")


class Metrics:
    def __init__(self, model_name: str) -> None:
        self._model = f'model_name="{escaped(model_name)}"'
        self._prompt_tokens = 0
        self._cached_tokens = 0
        self._generated = 0
        self._finished: Counter[str] = Counter()
        self._first_token = Histogram(FIRST_TOKEN)
        self._between_tokens = Histogram(BETWEEN_TOKENS)
        self._whole = Histogram(REQUEST)
        self._queue = Histogram(REQUEST)
        self._prefill = Histogram(REQUEST)
        self._decode = Histogram(REQUEST)

    def gained(self, gains: Sequence[Gain]) -> None:
        for gain in gains:
            sequence = gain.sequence
            self._generated += gain.tokens
            if not gain.first:
                self._between_tokens.observe(gain.waited / gain.tokens, gain.tokens)
                continue
            self._prompt_tokens += sequence.prompt_tokens
            self._cached_tokens += sequence.cached
            self._first_token.observe(gain.waited)
            if gain.tokens > 1:  # a whole answer at once: its tokens are no time apart
                self._between_tokens.observe(0.0, gain.tokens - 1)

    def finished(self, gain: Gain, reason: str) -> None:
        sequence = gain.sequence
        admitted = sequence.admitted
        self._finished[reason] += 1
        self._whole.observe(sequence.last_token - sequence.arrived)
        self._queue.observe(admitted - sequence.arrived)
        self._prefill.observe(sequence.first_token - admitted)
        self._decode.observe(sequence.last_token - sequence.first_token)

    def aborted(self) -> None:
        self._finished["abort"] += 1

    def text(self, batch: Batch) -> str:
        return "\n".join(self._lines(batch)) + "\n"

    def _lines(self, batch: Batch) -> Iterator[str]:
        yield from self._cache_config(batch)
        cache = batch.cache
        gauges = {
            "num_requests_running": len(batch.running),
            "num_requests_waiting": len(batch.waiting),
            "kv_cache_usage_perc": cache.usage,
        }
        counters = {
            "prefix_cache_queries_total": cache.queries,
            "prefix_cache_hits_total": cache.hits,
            "num_preemptions_total": batch.preemptions,
            "prompt_tokens_total": self._prompt_tokens,
            "prompt_tokens_cached_total": self._cached_tokens,
            "generation_tokens_total": self._generated,
        }
        histograms = {
            "time_to_first_token_seconds": self._first_token,
            "inter_token_latency_seconds": self._between_tokens,
            "e2e_request_latency_seconds": self._whole,
            "request_queue_time_seconds": self._queue,
            "request_prefill_time_seconds": self._prefill,
            "request_decode_time_seconds": self._decode,
        }
        for kind, group in (("gauge", gauges), ("counter", counters)):
            for name, value in group.items():
                yield f"# TYPE vllm:{name} {kind}"
                yield f"vllm:{name}{{{ENGINE},{self._model}}} {float(value)}"
        yield "# TYPE vllm:request_success_total counter"
        for reason in FINISHES:
            labels = f'{ENGINE},finished_reason="{reason}",{self._model}'
            yield f"vllm:request_success_total{{{labels}}} {float(self._finished[reason])}"
        for name, histogram in histograms.items():
            yield f"# TYPE vllm:{name} histogram"
            yield from histogram.lines(f"vllm:{name}", ENGINE, self._model)

    def _cache_config(self, batch: Batch) -> Iterator[str]:
        cache = batch.cache
        blocks = cache.blocks + 1
        labels = {
            "block_size": cache.block_size,
            "enable_prefix_caching": cache.keeps_prefixes,
            "engine": 0,
            "kv_cache_size_tokens": blocks * cache.block_size,
            "num_gpu_blocks": blocks,
        }
        yield "# TYPE vllm:cache_config_info gauge"
        pairs = ",".join(f'{name}="{value}"' for name, value in labels.items())
        yield f"vllm:cache_config_info{{{pairs}}} 1.0"


def escaped(label: str) -> str:
    return label.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")

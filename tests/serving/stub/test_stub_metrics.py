from seatrial.serving.stub.core.batching import Batch
from seatrial.serving.stub.core.costs import Costs
from seatrial.serving.stub.core.prefix_cache import PrefixCache
from seatrial.serving.stub.core.sequence import Sequence
from seatrial.serving.stub.histogram import Histogram
from seatrial.serving.stub.metrics import Metrics

LABELS = '{engine="0",model_name="tiny"}'


def test_a_histogram_counts_up_to_each_bound() -> None:
    histogram = Histogram((1.0, 2.0))
    for value in (0.5, 1.0, 1.5, 9.0):
        histogram.observe(value)
    lines = list(histogram.lines("h", 'e="0"', 'm="x"'))
    assert lines[:3] == [
        'h_bucket{e="0",le="1.0",m="x"} 2.0',
        'h_bucket{e="0",le="2.0",m="x"} 3.0',
        'h_bucket{e="0",le="+Inf",m="x"} 4.0',
    ]
    assert lines[3:] == ['h_count{e="0",m="x"} 4.0', 'h_sum{e="0",m="x"} 12.0']


def test_times_of_a_request_are_told_apart() -> None:
    batch, metrics = Batch(PrefixCache(11, 4), Costs(step=1.0), max_sequences=1), Metrics("tiny")
    for _ in range(2):
        batch.add(Sequence.of(range(8), [1, 2, 3], 4), 0.0)
    now = 0.0
    while step := batch.begin(now):
        now = step.ends
        gains = batch.end(step)
        metrics.gained(gains)
        for gain in gains:
            if gain.done:
                metrics.finished(gain, "length")
    lines = metrics.text(batch).splitlines()
    for name, value in {
        "prompt_tokens_total": 16,
        "prompt_tokens_cached_total": 4,
        "generation_tokens_total": 6,
        "prefix_cache_queries_total": 16,
        "prefix_cache_hits_total": 4,
        "time_to_first_token_seconds_sum": 1 + 4,
        "inter_token_latency_seconds_sum": 4,
        "inter_token_latency_seconds_count": 4,
        "request_queue_time_seconds_sum": 3,
        "request_prefill_time_seconds_sum": 2,
        "request_decode_time_seconds_sum": 4,
        "e2e_request_latency_seconds_sum": 3 + 6,
        "num_requests_running": 0,
    }.items():
        assert f"vllm:{name}{LABELS} {float(value)}" in lines
    assert 'vllm:request_success_total{engine="0",finished_reason="length",model_name="tiny"} 2.0' in lines


def test_gauges_show_what_runs_waits_and_is_used() -> None:
    batch, metrics = Batch(PrefixCache(11, 4), Costs(step=1.0), max_sequences=1), Metrics('a "name"')
    for _ in range(3):
        batch.add(Sequence.of(range(8), [1], 4), 0.0)
    batch.begin(0.0)
    text = metrics.text(batch)
    labels = r'{engine="0",model_name="a \"name\""}'
    assert f"vllm:num_requests_running{labels} 1.0\n" in text
    assert f"vllm:num_requests_waiting{labels} 2.0\n" in text
    assert f"vllm:kv_cache_usage_perc{labels} 0.2\n" in text
    assert 'block_size="4"' in text
    assert 'num_gpu_blocks="11"' in text

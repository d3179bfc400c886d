"""What the project relies on in an engine, asked of the stand-in and of a real vLLM alike.

The real one runs a tiny random model, so nothing here looks at what the text says.
"""

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from engine_process import Adapter, EngineUnderTest
from http_client import Said, call, eventually, metric

LONG = "The quick brown fox jumps over the lazy dog. " * 10
HELLO = [{"role": "user", "content": "hello there"}]
TOOL = {
    "type": "function",
    "function": {
        "name": "look",
        "description": "Look at something.",
        # Without `strict`, vLLM 0.32 holds a required call to JSON but not to this schema.
        "strict": True,
        "parameters": {
            "type": "object",
            "properties": {"what": {"type": "string", "enum": ["sea", "sky"]}},
            "required": ["what"],
            "additionalProperties": False,
        },
    },
}


def never_seen() -> str:
    """A long prompt that no cache can hold yet."""
    return f"{time.time_ns()} {LONG}"


def complete(engine: EngineUnderTest, **fields: Any) -> Said:
    body = {"model": engine.model, "prompt": "hello", "max_tokens": 4, "temperature": 0}
    return call(f"{engine.url}/v1/completions", body | fields)


def chat(engine: EngineUnderTest, **fields: Any) -> Said:
    body = {"model": engine.model, "messages": HELLO, "max_tokens": 4, "temperature": 0}
    return call(f"{engine.url}/v1/chat/completions", body | fields)


def cards(engine: EngineUnderTest) -> dict[str, dict[str, Any]]:
    return {card["id"]: card for card in call(f"{engine.url}/v1/models").json["data"]}


def load(engine: EngineUnderTest, name: str, path: object, **more: Any) -> Said:
    body = {"lora_name": name, "lora_path": str(path)}
    return call(f"{engine.url}/v1/load_lora_adapter", body | more)


def unload(engine: EngineUnderTest, name: str) -> Said:
    return call(f"{engine.url}/v1/unload_lora_adapter", {"lora_name": name})


@contextmanager
def loaded(engine: EngineUnderTest, *adapters: Adapter) -> Iterator[None]:
    for name, directory in adapters:
        said = load(engine, name, directory)
        assert said.status == 200, said.text
    try:
        yield
    finally:
        for name, _ in adapters:
            unload(engine, name)


def assert_error(said: Said, status: int, kind: str, param: str | None, says: str) -> None:
    assert said.status == status
    error = said.json["error"]
    assert set(error) == {"message", "type", "param", "code"}
    assert (error["type"], error["param"], error["code"]) == (kind, param, status)
    assert says in error["message"]


def test_health_answers_with_an_empty_200(engine: EngineUnderTest) -> None:
    said = call(f"{engine.url}/health")
    assert (said.status, said.text) == (200, "")


def test_version_is_a_string(engine: EngineUnderTest) -> None:
    assert call(f"{engine.url}/version").json["version"].split(".")[0].isdigit()


def test_the_base_model_is_listed_with_its_length(engine: EngineUnderTest) -> None:
    listed = call(f"{engine.url}/v1/models").json
    assert listed["object"] == "list"
    card = cards(engine)[engine.model]
    assert (card["object"], card["parent"]) == ("model", None)
    assert isinstance(card["root"], str)
    assert card["max_model_len"] > 0


def test_an_unknown_path_and_a_wrong_method_are_told_apart(engine: EngineUnderTest) -> None:
    assert call(f"{engine.url}/no/such/path").status == 404
    assert call(f"{engine.url}/v1/chat/completions").status == 405


def test_a_chat_completion(engine: EngineUnderTest) -> None:
    body = chat(engine, program_id="fields it does not know are tolerated").json
    assert body["object"] == "chat.completion"
    assert body["id"].startswith("chatcmpl-")
    assert body["model"] == engine.model
    (choice,) = body["choices"]
    assert choice["index"] == 0
    assert choice["message"]["role"] == "assistant"
    assert isinstance(choice["message"]["content"], str)
    assert choice["finish_reason"] == "length"
    assert choice["logprobs"] is None


def test_a_text_completion(engine: EngineUnderTest) -> None:
    body = complete(engine).json
    assert body["object"] == "text_completion"
    assert body["id"].startswith("cmpl-")
    (choice,) = body["choices"]
    assert isinstance(choice["text"], str)
    assert choice["finish_reason"] == "length"


def test_usage_adds_up(engine: EngineUnderTest) -> None:
    for usage in (chat(engine).json["usage"], complete(engine).json["usage"]):
        assert usage["completion_tokens"] == 4
        assert usage["prompt_tokens"] > 0
        assert usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"]


def test_no_model_name_means_the_base_model(engine: EngineUnderTest) -> None:
    assert chat(engine, model=None).json["model"] == engine.model


def test_a_prompt_may_be_token_ids(engine: EngineUnderTest) -> None:
    assert complete(engine, prompt=[1, 2, 3]).json["usage"]["prompt_tokens"] == 3


def test_several_prompts_and_several_choices(engine: EngineUnderTest) -> None:
    body = complete(engine, prompt=["ab", "cd"], max_tokens=2).json
    assert [choice["index"] for choice in body["choices"]] == [0, 1]
    assert body["usage"]["completion_tokens"] == 4
    body = chat(engine, n=2, temperature=0.7, max_tokens=2).json
    assert [choice["index"] for choice in body["choices"]] == [0, 1]
    assert body["usage"]["completion_tokens"] == 4


def test_a_chat_streams_role_tokens_finish_usage_done(engine: EngineUnderTest) -> None:
    said = chat(engine, stream=True, stream_options={"include_usage": True})
    assert said.kind.startswith("text/event-stream")
    assert said.events[-1] == "[DONE]"
    first, *middle, usage = said.chunks
    assert {chunk["object"] for chunk in said.chunks} == {"chat.completion.chunk"}
    assert len({chunk["id"] for chunk in said.chunks}) == 1
    assert first["choices"][0]["delta"] == {"role": "assistant", "content": ""}
    finishes = [chunk["choices"][0]["finish_reason"] for chunk in middle]
    assert finishes[-1] == "length"
    assert set(finishes[:-1]) <= {None}
    assert usage["choices"] == []
    assert usage["usage"]["completion_tokens"] == 4
    assert usage["usage"]["prompt_tokens_details"]["cached_tokens"] >= 0
    assert not any(chunk.get("usage") for chunk in [first, *middle])


def test_a_text_completion_streams(engine: EngineUnderTest) -> None:
    said = complete(engine, stream=True, stream_options={"include_usage": True})
    *tokens, usage = said.chunks
    assert {chunk["object"] for chunk in said.chunks} == {"text_completion"}
    assert all(isinstance(chunk["choices"][0]["text"], str) for chunk in tokens)
    assert tokens[-1]["choices"][0]["finish_reason"] == "length"
    assert usage["choices"] == []
    assert usage["usage"]["total_tokens"] == usage["usage"]["prompt_tokens"] + 4
    assert said.events[-1] == "[DONE]"


def test_without_asking_there_is_no_usage_chunk(engine: EngineUnderTest) -> None:
    said = chat(engine, stream=True)
    assert all(chunk["choices"] for chunk in said.chunks)
    assert said.events[-1] == "[DONE]"


def test_stream_options_without_a_stream_are_refused(engine: EngineUnderTest) -> None:
    said = chat(engine, stream_options={"include_usage": True})
    assert_error(said, 400, "BadRequestError", "stream_options", "Stream options")


def test_a_repeated_long_prompt_comes_from_the_cache(engine: EngineUnderTest) -> None:
    prompt = never_seen()
    first, second = (complete(engine, prompt=prompt).json["usage"] for _ in range(2))
    assert first["prompt_tokens_details"]["cached_tokens"] == 0
    assert 0 < second["prompt_tokens_details"]["cached_tokens"] < second["prompt_tokens"]


def test_a_conversation_finds_its_earlier_turns(engine: EngineUnderTest) -> None:
    messages = [{"role": "user", "content": never_seen()}]
    first = chat(engine, messages=messages).json
    messages += [first["choices"][0]["message"], {"role": "user", "content": LONG}]
    second = chat(engine, messages=messages).json["usage"]
    messages += [{"role": "assistant", "content": "yes"}, {"role": "user", "content": "go on"}]
    third = chat(engine, messages=messages).json["usage"]
    cached = [usage["prompt_tokens_details"]["cached_tokens"] for usage in (first["usage"], second, third)]
    assert 0 == cached[0] < cached[1] < cached[2]


def test_the_cache_can_be_told_to_forget(engine: EngineUnderTest) -> None:
    complete(engine, prompt=LONG)
    # vLLM frees the blocks of an answer just after it was given.
    assert eventually(lambda: call(f"{engine.url}/reset_prefix_cache", {}).json == {"success": True})
    assert complete(engine, prompt=LONG).json["usage"]["prompt_tokens_details"]["cached_tokens"] == 0


def test_an_unknown_model_is_a_404(engine: EngineUnderTest) -> None:
    for said in (complete(engine, model="nobody"), chat(engine, model="nobody")):
        assert_error(said, 404, "NotFoundError", "model", "The model `nobody` does not exist")


def test_a_prompt_that_is_too_long_is_a_400(engine: EngineUnderTest) -> None:
    length = cards(engine)[engine.model]["max_model_len"]
    long_chat = [{"role": "user", "content": "word " * (length + 1)}]
    for said in (complete(engine, prompt=[5] * (length + 1)), chat(engine, messages=long_chat)):
        assert_error(
            said, 400, "BadRequestError", "input_tokens", f"maximum context length is {length} tokens"
        )
    said = complete(engine, prompt=[5] * (length + 1), stream=True)
    assert_error(said, 400, "BadRequestError", "input_tokens", "maximum context length")


def test_an_answer_ends_where_the_context_ends(engine: EngineUnderTest) -> None:
    length = cards(engine)[engine.model]["max_model_len"]
    usage = complete(engine, prompt=[5] * (length - 1), max_tokens=10).json["usage"]
    assert usage["completion_tokens"] == 1


def test_max_tokens_has_bounds(engine: EngineUnderTest) -> None:
    length = cards(engine)[engine.model]["max_model_len"]
    assert_error(complete(engine, max_tokens=0), 400, "BadRequestError", "max_tokens", "at least 1")
    said = complete(engine, max_tokens=length + 1)
    assert_error(said, 400, "BadRequestError", "max_tokens", "cannot be greater than max_model_len")


@pytest.mark.parametrize(
    ("path", "body", "param"),
    [
        ("/v1/chat/completions", {}, "body.messages"),
        ("/v1/chat/completions", {"messages": "hello"}, "body.messages"),
        ("/v1/chat/completions", {"messages": HELLO, "max_tokens": "many"}, "body.max_tokens"),
        ("/v1/chat/completions", {"messages": HELLO, "top_logprobs": 2}, "top_logprobs"),
        ("/v1/chat/completions", {"messages": HELLO, "tool_choice": "required"}, "tool_choice"),
        ("/v1/chat/completions", {"messages": []}, None),
        (
            "/v1/chat/completions",
            {"messages": HELLO, "stream": True, "stream_options": 1},
            "body.stream_options",
        ),
        ("/v1/chat/completions", [1], "body"),
        ("/v1/completions", {}, "prompt"),
        ("/v1/completions", {"prompt": ""}, "prompt"),
        ("/v1/completions", {"prompt": []}, None),
        ("/v1/completions", {"prompt": "x", "logprobs": 50}, "logprobs"),
        ("/v1/load_lora_adapter", {"lora_name": "x"}, "body.lora_path"),
        ("/tokenize", {}, "body.prompt"),
    ],
)
def test_a_malformed_request_is_a_400(
    engine: EngineUnderTest, path: str, body: object, param: str | None
) -> None:
    said = call(f"{engine.url}{path}", body)
    assert said.status == 400
    assert said.json["error"]["param"] == param
    assert said.json["error"]["code"] == 400


def test_an_adapter_is_loaded_listed_used_and_unloaded(engine: EngineUnderTest) -> None:
    name, directory = engine.adapter_a
    said = load(engine, name, directory)
    assert (said.status, said.text) == (200, f"Success: LoRA adapter '{name}' added successfully.")
    card = cards(engine)[name]
    assert (card["root"], card["parent"], card["max_model_len"]) == (str(directory), engine.model, None)
    assert complete(engine, model=name).json["model"] == name
    said = unload(engine, name)
    assert (said.status, said.text) == (200, f"Success: LoRA adapter '{name}' removed successfully.")
    assert name not in cards(engine)
    assert complete(engine, model=name).status == 404


def test_an_adapter_is_loaded_twice_only_in_place(engine: EngineUnderTest) -> None:
    name, directory = engine.adapter_a
    with loaded(engine, engine.adapter_a):
        said = load(engine, name, directory)
        assert_error(
            said, 400, "InvalidUserInput", None, f"The lora adapter '{name}' has already been loaded."
        )
        assert load(engine, name, engine.adapter_b[1], load_inplace=True).status == 200
        assert cards(engine)[name]["root"] == str(engine.adapter_b[1])


def test_what_cannot_be_loaded_is_refused(engine: EngineUnderTest) -> None:
    says = "Loading lora lost failed: No adapter found for"
    assert_error(load(engine, "lost", engine.adapter_a[1] / "nowhere"), 404, "NotFoundError", None, says)
    says = "conflicts with a served base model"
    assert_error(load(engine, engine.model, engine.adapter_a[1]), 400, "InvalidUserInput", None, says)
    says = "Both 'lora_name' and 'lora_path' must be provided."
    assert_error(load(engine, "", engine.adapter_a[1]), 400, "InvalidUserInput", None, says)
    assert "lost" not in cards(engine)


def test_unloading_an_unknown_adapter_is_a_404(engine: EngineUnderTest) -> None:
    says = "The lora adapter 'nobody' cannot be found."
    assert_error(unload(engine, "nobody"), 404, "NotFoundError", None, says)


def test_adapters_answer_with_other_logprobs_than_the_base(engine: EngineUnderTest) -> None:
    with loaded(engine, engine.adapter_a, engine.adapter_b):
        models = (engine.model, engine.adapter_a[0], engine.adapter_b[0])
        choices = [complete(engine, model=model, logprobs=1).json["choices"][0] for model in models]
    found = [tuple(choice["logprobs"]["token_logprobs"]) for choice in choices]
    assert len(set(found)) == 3
    assert all(logprob <= 0 for logprobs in found for logprob in logprobs)


def test_base_and_adapters_find_nothing_in_each_others_cache(engine: EngineUnderTest) -> None:
    prompt = never_seen()
    with loaded(engine, engine.adapter_a, engine.adapter_b):
        for model in (engine.model, engine.adapter_a[0], engine.adapter_b[0]):
            found = [complete(engine, prompt=prompt, model=model).json["usage"] for _ in range(2)]
            cached = [usage["prompt_tokens_details"]["cached_tokens"] for usage in found]
            assert cached[0] == 0
            assert cached[1] > 0


def test_logprobs_of_a_text_completion(engine: EngineUnderTest) -> None:
    logprobs = complete(engine, logprobs=2).json["choices"][0]["logprobs"]
    assert set(logprobs) == {"text_offset", "token_logprobs", "tokens", "top_logprobs"}
    assert {len(values) for values in logprobs.values()} == {4}
    assert logprobs["text_offset"][0] == 0
    assert all(1 <= len(alternatives) <= 2 for alternatives in logprobs["top_logprobs"])


def test_logprobs_of_a_chat_completion(engine: EngineUnderTest) -> None:
    content = chat(engine, logprobs=True, top_logprobs=2).json["choices"][0]["logprobs"]["content"]
    assert len(content) == 4
    for token in content:
        assert set(token) == {"token", "logprob", "bytes", "top_logprobs"}
        assert len(token["top_logprobs"]) == 2
        assert token["top_logprobs"][0]["logprob"] >= token["top_logprobs"][1]["logprob"]


def test_a_required_tool_call_can_be_parsed(engine: EngineUnderTest) -> None:
    fields = {"tools": [TOOL], "tool_choice": "required", "parallel_tool_calls": False, "max_tokens": 200}
    choice = chat(engine, **fields).json["choices"][0]
    assert choice["finish_reason"] == "tool_calls"
    (found,) = choice["message"]["tool_calls"]
    assert found["type"] == "function"
    assert found["id"]
    assert found["function"]["name"] == "look"
    assert json.loads(found["function"]["arguments"])["what"] in ("sea", "sky")


def test_a_named_tool_is_called(engine: EngineUnderTest) -> None:
    named = {"type": "function", "function": {"name": "look"}}
    choice = chat(engine, tools=[TOOL], tool_choice=named, max_tokens=200).json["choices"][0]
    assert choice["finish_reason"] == "stop"
    (found,) = choice["message"]["tool_calls"]
    assert json.loads(found["function"]["arguments"])["what"] in ("sea", "sky")


def test_a_streamed_tool_call_adds_up_to_a_whole_one(engine: EngineUnderTest) -> None:
    fields = {"tools": [TOOL], "tool_choice": "required", "parallel_tool_calls": False, "max_tokens": 200}
    chunks = chat(engine, **fields, stream=True).chunks
    deltas = [call for chunk in chunks for call in chunk["choices"][0]["delta"].get("tool_calls") or ()]
    assert (deltas[0]["type"], deltas[0]["index"]) == ("function", 0)
    assert deltas[0]["id"]
    assert deltas[0]["function"]["name"] == "look"
    arguments = "".join(delta["function"].get("arguments") or "" for delta in deltas)
    assert json.loads(arguments)["what"] in ("sea", "sky")
    assert chunks[-1]["choices"][0]["finish_reason"] == "tool_calls"


def test_a_tool_that_was_not_offered_cannot_be_named(engine: EngineUnderTest) -> None:
    named = {"type": "function", "function": {"name": "other"}}
    said = chat(engine, tools=[TOOL], tool_choice=named)
    assert_error(said, 400, "BadRequestError", "tool_choice", "does not match any of the specified `tools`")


def test_a_conversation_with_tool_results_is_understood(engine: EngineUnderTest) -> None:
    function = {"name": "look", "arguments": '{"what": "sea"}'}
    called = {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "1", "type": "function", "function": function}],
    }
    result = {"role": "tool", "tool_call_id": "1", "content": "waves"}
    assert chat(engine, messages=[*HELLO, called, result], tools=[TOOL]).status == 200


def test_a_stop_string_ends_the_answer_before_it(engine: EngineUnderTest) -> None:
    for prompt in ("hello", "once upon a time", "the sea", "1 2 3"):
        whole = complete(engine, prompt=prompt, max_tokens=40).json["choices"][0]["text"]
        if letters := [letter for letter in whole[1:] if "!" <= letter <= "~"]:
            break
    stop = letters[0]
    body = complete(engine, prompt=prompt, max_tokens=40, stop=[stop]).json
    choice = body["choices"][0]
    assert (choice["finish_reason"], choice["stop_reason"]) == ("stop", stop)
    assert stop not in choice["text"]
    assert body["usage"]["completion_tokens"] < 40
    kept = complete(engine, prompt=prompt, max_tokens=40, stop=stop, include_stop_str_in_output=True).json
    assert kept["choices"][0]["text"].endswith(stop)


def test_tokenize_counts_what_usage_counts(engine: EngineUnderTest) -> None:
    said = call(f"{engine.url}/tokenize", {"model": engine.model, "prompt": LONG}).json
    assert (
        said["count"] == len(said["tokens"]) == complete(engine, prompt=LONG).json["usage"]["prompt_tokens"]
    )
    assert said["max_model_len"] == cards(engine)[engine.model]["max_model_len"]
    said = call(f"{engine.url}/tokenize", {"model": engine.model, "messages": HELLO}).json
    assert said["count"] == chat(engine).json["usage"]["prompt_tokens"]


def test_tokens_given_as_ids_find_what_their_text_left(engine: EngineUnderTest) -> None:
    complete(engine, prompt=LONG)
    ids = call(f"{engine.url}/tokenize", {"model": engine.model, "prompt": LONG}).json["tokens"]
    assert complete(engine, prompt=ids).json["usage"]["prompt_tokens_details"]["cached_tokens"] > 0


GAUGES = ("vllm:num_requests_running", "vllm:num_requests_waiting", "vllm:kv_cache_usage_perc")
RISING = (
    "vllm:prefix_cache_queries_total",
    "vllm:prefix_cache_hits_total",
    "vllm:prompt_tokens_total",
    "vllm:generation_tokens_total",
    "vllm:request_success_total",
    "vllm:time_to_first_token_seconds_count",
    "vllm:inter_token_latency_seconds_count",
    "vllm:e2e_request_latency_seconds_count",
    "vllm:request_prefill_time_seconds_count",
    "vllm:request_decode_time_seconds_count",
)


def test_metrics_rise_with_work(engine: EngineUnderTest) -> None:
    complete(engine, prompt=LONG)
    before = {name: metric(engine.url, name) for name in RISING}
    usage = complete(engine, prompt=LONG).json["usage"]
    assert eventually(lambda: all(metric(engine.url, name) > before[name] for name in RISING))
    generated = metric(engine.url, "vllm:generation_tokens_total") - before["vllm:generation_tokens_total"]
    assert generated == usage["completion_tokens"]
    queried = (
        metric(engine.url, "vllm:prefix_cache_queries_total") - before["vllm:prefix_cache_queries_total"]
    )
    assert queried == usage["prompt_tokens"]


def test_metrics_have_vllms_names_and_labels(engine: EngineUnderTest) -> None:
    text = call(f"{engine.url}/metrics").text
    assert metric(engine.url, "vllm:num_preemptions_total") == 0
    assert eventually(lambda: all(metric(engine.url, name) == 0 for name in GAUGES))
    (config,) = [line for line in text.splitlines() if line.startswith("vllm:cache_config_info{")]
    assert 'engine="0"' in config
    assert ' block_size="' in config.replace("{", " ").replace(",", " ")
    assert 'num_gpu_blocks="' in config
    labels = f'{{engine="0",model_name="{engine.model}"}}'
    assert f"vllm:num_requests_running{labels} " in text
    for name in RISING[5:]:
        base = name.removesuffix("_count")
        assert f"{base}_sum{labels} " in text
        assert f'{base}_bucket{{engine="0",le="+Inf",model_name="{engine.model}"}} ' in text

"""The stand-in as users start it: a process with a port."""

import asyncio
import json
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from engine_process import StubProcess, running_stub, stub_environment, write_adapter
from http_client import Said, call, eventually, metric

Start = Callable[..., StubProcess]


def ended(*flags: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "seatrial", "stub", *flags]
    return subprocess.run(command, capture_output=True, text=True, timeout=30, env=stub_environment())


def chat(url: str, content: str = "hello", **fields: Any) -> Said:
    body = {"messages": [{"role": "user", "content": content}], **fields}
    return call(f"{url}/v1/chat/completions", body)


def test_sigterm_and_sigint_end_it_with_0(stub: Start) -> None:
    for number in (signal.SIGTERM, signal.SIGINT):
        started = stub()
        started.process.send_signal(number)
        assert started.process.wait(5) == 0


def test_it_ends_also_while_a_request_runs(stub: Start) -> None:
    started = stub("--seconds-per-step", "5")
    host, port = started.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port))) as client:
        body = json.dumps({"prompt": "x"}).encode()
        head = f"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n"
        client.sendall(f"{head}Content-Type: application/json\r\n\r\n".encode() + body)
        assert eventually(lambda: metric(started.url, "vllm:num_requests_running") == 1)
        started.process.terminate()
        assert started.process.wait(5) == 0


def test_a_port_in_use_is_one_message_and_exit_2(stub: Start) -> None:
    port = stub().url.rpartition(":")[2]
    second = ended("--port", port)
    assert (second.returncode, second.stdout) == (2, "")
    assert second.stderr.splitlines()[0] == f"seatrial: port {port} on 127.0.0.1 is in use"


def test_it_fails_to_start_when_told_to() -> None:
    failed = ended("--fail-start", "RuntimeError: out of memory")
    assert (failed.returncode, failed.stdout, failed.stderr) == (1, "", "RuntimeError: out of memory\n")


def test_an_adapter_that_does_not_fit_keeps_it_from_starting(tmp_path: Path) -> None:
    large = write_adapter(tmp_path / "large", rank=64)
    failed = ended("--port", "0", "--lora-modules", f"large={large}")
    assert failed.returncode == 1
    assert "LoRA rank 64 is greater than max_lora_rank 16." in failed.stderr


def test_it_listens_only_after_its_startup() -> None:
    began = time.monotonic()
    with running_stub("seatrial", "stub", "--port", "0", "--startup-seconds", "0.7") as started:
        assert time.monotonic() - began >= 0.7
        assert call(f"{started.url}/health").status == 200


def test_it_stands_in_for_vllm_serve() -> None:
    words = (
        "serve",
        "tiny",
        "--port",
        "0",
        "--enforce-eager",
        "--dtype",
        "float32",
        "--max-model-len",
        "512",
    )
    with running_stub("seatrial.serving.stub", *words) as started:
        assert call(f"{started.url}/v1/models").json["data"][0]["max_model_len"] == 512
        assert call(f"{started.url}/v1/load_lora_adapter", {"lora_name": "a", "lora_path": "b"}).status == 404
        assert chat(started.url).json["usage"]["prompt_tokens_details"] is None
        tools = [{"type": "function", "function": {"name": "f"}}]
        said = chat(started.url, tools=tools)
        assert said.status == 400
        assert '"auto" tool choice requires --enable-auto-tool-choice' in said.json["error"]["message"]


def test_it_needs_nothing_beyond_aiohttp() -> None:
    code = (
        "import sys, seatrial.serving.stub.__main__\n"
        "print(sorted({'pydantic', 'yaml', 'numpy', 'rich'} & set(sys.modules)))"
    )
    command = [sys.executable, "-c", code]
    found = subprocess.run(command, capture_output=True, text=True, check=True, env=stub_environment())
    assert found.stdout.strip() == "[]"


def test_a_key_guards_v1_only(stub: Start) -> None:
    url = stub(VLLM_API_KEY="secret").url
    assert call(f"{url}/health").status == 200
    assert call(f"{url}/metrics").status == 200
    for key in ("", "wrong"):
        said = call(f"{url}/v1/models", key=key)
        assert (said.status, said.json) == (401, {"error": "Unauthorized"})
    assert call(f"{url}/v1/models", key="secret").status == 200


def test_a_rank_above_the_limit_is_refused_as_vllm_does(stub: Start, tmp_path: Path) -> None:
    url = stub("--max-lora-rank", "32").url
    body = {"lora_name": "large", "lora_path": str(write_adapter(tmp_path / "large", rank=64))}
    said = call(f"{url}/v1/load_lora_adapter", body)
    assert said.status == 500
    assert said.json["error"]["type"] == "InternalServerError"
    assert "LoRA rank 64 is greater than max_lora_rank 32." in said.json["error"]["message"]


def test_answers_follow_the_script(stub: Start, tmp_path: Path) -> None:
    script = tmp_path / "script.json"
    rules = [
        {"match": "files", "tool_calls": [{"name": "run", "arguments": {"command": "ls"}}]},
        {"turn": 0, "reply": "ready"},
    ]
    script.write_text(json.dumps(rules))
    url = stub("--script", str(script)).url
    tools = [{"type": "function", "function": {"name": "run"}}]
    choice = chat(url, "which files?", tools=tools).json["choices"][0]
    assert choice["finish_reason"] == "tool_calls"
    assert choice["message"]["content"] is None
    assert choice["message"]["tool_calls"][0]["function"] == {"name": "run", "arguments": '{"command": "ls"}'}
    choice = chat(url).json["choices"][0]
    assert (choice["message"]["content"], choice["finish_reason"]) == ("ready", "stop")


def test_a_stream_says_what_the_whole_answer_says(stub: Start) -> None:
    url = stub().url
    whole = chat(url, max_tokens=9).json["choices"][0]["message"]["content"]
    chunks = chat(url, max_tokens=9, stream=True).chunks
    assert "".join(chunk["choices"][0]["delta"].get("content") or "" for chunk in chunks) == whole
    assert len(chunks) == 1 + 9


def test_without_a_limit_an_answer_has_16_tokens_and_stops(stub: Start) -> None:
    said = chat(stub().url).json
    assert (said["usage"]["completion_tokens"], said["choices"][0]["finish_reason"]) == (16, "stop")


def test_max_new_tokens_of_the_generation_config_is_a_cap(stub: Start) -> None:
    url = stub("--override-generation-config", '{"max_new_tokens": 20}').url
    for asked in (None, 50):
        assert chat(url, max_tokens=asked).json["usage"]["completion_tokens"] == 20
    assert chat(url, max_tokens=5).json["usage"]["completion_tokens"] == 5


def test_a_client_that_hangs_up_frees_its_blocks(stub: Start) -> None:
    url = stub("--seconds-per-step", "0.02").url
    for stream in (False, True):
        asyncio.run(hang_up(url, stream))
        assert eventually(lambda: metric(url, "vllm:num_requests_running") == 0)
        assert metric(url, "vllm:kv_cache_usage_perc") == 0
    aborted = 'vllm:request_success_total{engine="0",finished_reason="abort",model_name="stub"} 2.0'
    assert aborted in call(f"{url}/metrics").text


async def hang_up(url: str, stream: bool) -> None:
    host, port = url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    body = json.dumps({"prompt": "x " * 50, "max_tokens": 1000, "stream": stream}).encode()
    head = f"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n"
    writer.write(f"{head}Content-Type: application/json\r\n\r\n".encode() + body)
    if stream:
        await reader.readuntil(b"data: ")
    used = asyncio.to_thread(eventually, lambda: metric(url, "vllm:kv_cache_usage_perc") > 0)
    assert await used
    writer.close()
    await writer.wait_closed()


def test_many_at_once_are_batched(stub: Start) -> None:
    url = stub("--seconds-per-step", "0.02", "--max-num-seqs", "64").url

    async def main() -> float:
        began = time.monotonic()
        said = await asyncio.gather(*(asyncio.to_thread(chat, url, str(n), max_tokens=10) for n in range(8)))
        assert all(each.status == 200 for each in said)
        return time.monotonic() - began

    assert asyncio.run(main()) < 8 * 10 * 0.02 * 0.75

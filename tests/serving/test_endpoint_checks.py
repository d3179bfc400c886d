import asyncio
import json
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

from engine_process import StubProcess

from seatrial.config.endpoints import Endpoint
from seatrial.serving.endpoint_checks import check_pool

Stub = Callable[..., StubProcess]


def endpoint(stub: StubProcess) -> dict[str, object]:
    return {"ip_addr": "127.0.0.1", "port": urlsplit(stub.url).port}


def check(tmp_path: Path, pool: dict[str, object]) -> subprocess.CompletedProcess[str]:
    (tmp_path / "pool.json").write_text(json.dumps(pool))
    command = [sys.executable, "-m", "seatrial", "endpoints", "check", str(tmp_path / "pool.json"), "--json"]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_fit_endpoints_pass_with_their_context_and_tools(stub: Stub, tmp_path: Path) -> None:
    served = [stub("--model", "/ckpt/Orchestrator-8B/", "--max-model-len", "4096") for _ in range(2)]
    done = check(tmp_path, {"_comment": "x", "/ckpt/Orchestrator-8B/": [endpoint(one) for one in served]})
    assert done.returncode == 0
    verdicts = json.loads(done.stdout)
    assert [(v["ok"], v["max_model_len"], v["tools"]) for v in verdicts] == [(True, 4096, "ok")] * 2


def test_each_fault_is_told_and_the_command_fails(stub: Stub, tmp_path: Path) -> None:
    other = stub("--model", "another")
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
    done = check(tmp_path, {"wanted": [endpoint(other), {"ip_addr": "127.0.0.1", "port": port}]})
    assert done.returncode == 1
    serves_other, unreachable = json.loads(done.stdout)
    assert serves_other["text"] == "serves another, not this model"
    assert "cannot reach" in unreachable["text"]


def test_a_model_under_another_name_is_not_served(stub: Stub, tmp_path: Path) -> None:
    renamed = stub("--model", "/ckpt/model", "--served-model-name", "short")
    done = check(tmp_path, {"/ckpt/model": [endpoint(renamed)]})
    assert done.returncode == 1
    assert "under another name, short" in json.loads(done.stdout)[0]["text"]


def test_a_call_that_the_parser_left_in_the_text_is_told(stub: Stub, tmp_path: Path) -> None:
    script = tmp_path / "script.yaml"
    script.write_text('rules: [{reply: "<tool_call>{}</tool_call>"}]')
    done = check(tmp_path, {"tiny": [endpoint(stub("--model", "tiny", "--script", str(script)))]})
    assert done.returncode == 1
    assert "another tool-call parser is needed" in json.loads(done.stdout)[0]["tools"]


def test_a_server_without_a_tool_parser_fails(tmp_path: Path, stub_without_tools: StubProcess) -> None:
    done = check(tmp_path, {"tiny": [endpoint(stub_without_tools)]})
    assert done.returncode == 1
    [verdict] = json.loads(done.stdout)
    assert "auto" in verdict["tools"]


def test_endpoints_that_hang_are_asked_side_by_side() -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen(64)
        port = silent.getsockname()[1]
        begin = time.monotonic()
        pool = {"m": [Endpoint(ip_addr="127.0.0.1", port=port)] * 16}
        verdicts = asyncio.run(check_pool(pool, timeout_s=0.5))
    assert {verdict.ok for verdict in verdicts} == {False}
    assert time.monotonic() - begin < 16 * 0.5

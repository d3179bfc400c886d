"""`seatrial serve` with the stub engine in place of vLLM: the same command, supervisor, keeper and logs."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from http_client import call
from served import Served, wait_until

from seatrial.config.serve import RestartPolicy
from seatrial.serving import keeper
from seatrial.serving.adapters.random import make_random
from seatrial.serving.models.catalog import make_own
from seatrial.serving.ports import free_port
from seatrial.serving.supervisor import Restarts

STUB = {"engine": {"name": "stub"}, "model_id": "tiny", "enable_lora": True}


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Callable[..., Served]]:
    """Start `seatrial serve` on this config; it is killed with all it started when the test ends."""
    started: list[Served] = []

    def start(**settings: Any) -> Served:
        served = Served(STUB | {"port": free_port()} | settings, tmp_path / f"serve-{len(started)}")
        started.append(served)
        return served

    yield start
    for served in started:
        served.kill_all()


def test_replicas_answer_on_consecutive_ports_and_log_apart(serve: Callable[..., Served]) -> None:
    served = serve(replicas=2).wait_ready()
    for port in served.ports:
        models = call(f"http://127.0.0.1:{port}/v1/models").json
        assert [card["id"] for card in models["data"]] == ["tiny"]
    for index in (0, 1):
        log = served.run / "logs" / f"replica-{index}.log"
        assert f"stub ready on http://127.0.0.1:{served.ports[index]}" in log.read_text()
        assert f"[{index}] stub ready" in served.output()
    record = json.loads((served.run / "run.json").read_text())
    assert record["status"] == "running"
    assert served.stop() == 0
    assert json.loads((served.run / "run.json").read_text())["status"] == "finished"


def test_a_killed_replica_comes_back_while_the_other_answers(serve: Callable[..., Served]) -> None:
    served = serve(replicas=2, restart={"first_delay_s": 0.2}).wait_ready()
    victim = served.engine_of(0)
    os.kill(victim, signal.SIGKILL)
    wait_until(lambda: "restarting in" in served.output())
    assert call(f"http://127.0.0.1:{served.ports[1]}/health").status == 200
    wait_until(lambda: served.output().count("replica 0: healthy") == 2)
    assert served.engine_of(0) != victim
    assert call(f"http://127.0.0.1:{served.ports[0]}/health").status == 200


def test_a_restarted_replica_gets_its_adapters_back(serve: Callable[..., Served], tmp_path: Path) -> None:
    adapter = make_random(make_own("tiny", print, tmp_path / "tiny"), tmp_path / "adapter", seed=1)
    served = serve(restart={"first_delay_s": 0.2}).wait_ready()
    url = f"http://127.0.0.1:{served.ports[0]}"
    done = subprocess.run(
        [sys.executable, "-m", "seatrial", "adapters", "load", "sql", str(adapter), "--url", url],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    before = {card["id"] for card in call(f"{url}/v1/models").json["data"]}
    assert {name.partition("@")[0] for name in before} == {"tiny", "sql"}
    time.sleep(3)  # the supervisor looks every two seconds
    os.kill(served.engine_of(0), signal.SIGKILL)
    wait_until(lambda: "loaded again" in served.output())
    assert {card["id"] for card in call(f"{url}/v1/models").json["data"]} == before


def test_kill_9_of_the_supervisor_leaves_no_process(serve: Callable[..., Served]) -> None:
    served = serve(replicas=2).wait_ready()
    children = keeper.descendants(served.process.pid)
    assert len(children) >= 4
    served.process.kill()
    wait_until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in children), seconds=10)


def test_kill_9_of_a_keeper_leaves_no_process_and_the_replica_comes_back(
    serve: Callable[..., Served],
) -> None:
    served = serve(restart={"first_delay_s": 0.2}).wait_ready()
    engine = served.engine_of(0)
    os.kill(served.keepers()[0], signal.SIGKILL)
    wait_until(lambda: not Path(f"/proc/{engine}").exists())
    wait_until(lambda: served.output().count("replica 0: healthy") == 2)


def test_a_replica_that_keeps_dying_is_given_up(serve: Callable[..., Served]) -> None:
    served = serve(replicas=2, restart={"limit": 1, "first_delay_s": 0.1}).wait_ready()
    os.kill(served.engine_of(0), signal.SIGKILL)
    wait_until(lambda: served.output().count("replica 0: healthy") == 2)
    os.kill(served.engine_of(0), signal.SIGKILL)
    wait_until(lambda: "given up after 1 restarts" in served.output())
    assert call(f"http://127.0.0.1:{served.ports[1]}/health").status == 200


def test_when_all_are_given_up_the_command_fails(serve: Callable[..., Served]) -> None:
    served = serve(restart={"limit": 0}).wait_ready()
    os.kill(served.engine_of(0), signal.SIGKILL)
    assert served.process.wait(20) == 1
    assert "every replica was given up" in served.output()


def test_an_engine_that_cannot_start_fails_fast_with_its_own_words(serve: Callable[..., Served]) -> None:
    served = serve(extra_args={"fail-start": "ValueError: LoRA rank 64 is greater than max_lora_rank 16."})
    assert served.process.wait(20) == 2
    assert "LoRA rank 64 is greater than max_lora_rank 16." in served.output()
    assert "cure: set max_lora_rank" in served.output()
    assert "Traceback" not in served.output()


def test_an_unknown_death_shows_the_log_and_exits_1(serve: Callable[..., Served]) -> None:
    served = serve(extra_args={"fail-start": "RuntimeError: the moon is in the wrong house"})
    assert served.process.wait(20) == 1
    assert "the moon is in the wrong house" in served.output()


def test_a_start_that_takes_too_long_is_ended(serve: Callable[..., Served]) -> None:
    served = serve(extra_args={"startup-seconds": 60}, start_timeout_s=1)
    assert served.process.wait(30) == 1
    assert "was not healthy after 1 s" in served.output()


def test_ctrl_c_while_starting_stops_cleanly(serve: Callable[..., Served]) -> None:
    served = serve(extra_args={"startup-seconds": 60})
    wait_until(lambda: bool(served.keepers()))
    children = keeper.descendants(served.process.pid)
    served.process.send_signal(signal.SIGINT)
    assert served.process.wait(20) == 0
    assert not any(Path(f"/proc/{pid}").exists() for pid in children)


def test_a_port_in_use_is_bad_input(serve: Callable[..., Served]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        served = serve(port=taken.getsockname()[1])
        assert served.process.wait(20) == 2
    assert "is in use" in served.output()


def test_secrets_do_not_reach_the_engine(
    serve: Callable[..., Served], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret")
    monkeypatch.setenv("HF_TOKEN", "hf-needed")
    served = serve().wait_ready()
    variables = Path(f"/proc/{served.engine_of(0)}/environ").read_bytes()
    assert b"sk-very-secret" not in variables
    assert b"hf-needed" in variables
    everything = "".join(file.read_text() for file in served.run.rglob("*") if file.is_file())
    assert "hf-needed" not in everything


def test_delays_double_up_to_a_limit_and_old_restarts_are_forgiven() -> None:
    restarts = Restarts(RestartPolicy(limit=3, window_s=100, first_delay_s=1, max_delay_s=3))
    assert [restarts.next_delay(now) for now in (0, 10, 20, 30)] == [1, 2, 3, None]
    assert restarts.next_delay(115) is not None


def test_a_dry_run_starts_nothing_and_shows_the_command(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(yaml.safe_dump(STUB | {"replicas": 2, "port": 9000}))
    command = [sys.executable, "-m", "seatrial", "serve", "--config", str(path)]
    shown = subprocess.run([*command, "--dry-run"], capture_output=True, text=True, check=True).stdout
    assert [line.split("--port ")[1].split()[0] for line in shown.splitlines()] == ["9000", "9001"]
    resolved = json.loads(
        subprocess.run([*command, "--json"], capture_output=True, text=True, check=True).stdout
    )
    assert resolved["urls"] == ["http://127.0.0.1:9000", "http://127.0.0.1:9001"]

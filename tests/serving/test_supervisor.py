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
from served import Served, answers, is_alive, wait_until

from seatrial.config.serve import RestartPolicy
from seatrial.runs import read_events
from seatrial.serving import keeper
from seatrial.serving.adapters.random import make_random
from seatrial.serving.models.catalog import make_own
from seatrial.serving.ports import free_port
from seatrial.serving.restarts import Restarts

STUB = {"engine": {"name": "stub"}, "model_id": "tiny", "enable_lora": True}


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Callable[..., Served]]:
    """Start `seatrial serve` on this config; it is killed with all it started when the test ends."""
    started: list[Served] = []

    def start(**settings: Any) -> Served:
        options = {name: settings.pop(name) for name in ("console", "log", "nohup") if name in settings}
        config = STUB | {"port": free_port()} | settings
        served = Served(config, tmp_path / f"serve-{len(started)}", **options)
        started.append(served)
        return served

    yield start
    for served in started:
        served.kill_all()


def adapters(served: Served, *words: object) -> None:
    command = [sys.executable, "-m", "seatrial", "adapters", *map(str, words), "--url", served.url]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def roots(url: str) -> dict[str, str]:
    return {card["id"]: card["root"] for card in call(f"{url}/v1/models").json["data"]}


def remembered(served: Served) -> list[str]:
    """The adapters that the supervisor saw last."""
    seen = [event["loaded"] for event in read_events(served.run) if event["event"] == "adapters"]
    return seen[-1] if seen else []


def restart(served: Served) -> None:
    """Kill the engine and wait until it is back."""
    healthy = served.output().count("replica 0: healthy")
    os.kill(served.engine_of(0), signal.SIGKILL)
    wait_until(lambda: served.output().count("replica 0: healthy") > healthy)


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
    adapter = make_random(make_own("tiny", print), tmp_path / "adapter", seed=1)
    served = serve(restart={"first_delay_s": 0.2}).wait_ready()
    adapters(served, "load", "sql", adapter)
    before = roots(served.url)
    assert {name.partition("@")[0] for name in before} == {"tiny", "sql"}
    restart(served)  # at once: the supervisor has had no time to look
    assert roots(served.url) == before


def test_a_restarted_replica_has_what_clients_made_of_the_configs_adapters(
    serve: Callable[..., Served], tmp_path: Path
) -> None:
    model = make_own("tiny", print)
    old, new = (make_random(model, tmp_path / name, seed=seed) for name, seed in (("old", 1), ("new", 2)))
    modules = {"sql": str(old), "gone": str(old)}
    served = serve(restart={"first_delay_s": 0.2}, lora_modules=modules).wait_ready()
    begun = roots(served.url)
    assert sorted(name.partition("@")[0] for name in begun) == ["gone", "gone", "sql", "sql", "tiny"]
    adapters(served, "load", "sql", new)
    adapters(served, "unload", "gone")
    changed = roots(served.url)
    assert changed["sql"] != begun["sql"]
    restart(served)
    assert roots(served.url) == changed


def test_an_adapter_loaded_by_another_client_comes_back_too(
    serve: Callable[..., Served], tmp_path: Path
) -> None:
    adapter = make_random(make_own("tiny", print), tmp_path / "adapter", seed=1)
    served = serve(restart={"first_delay_s": 0.2}).wait_ready()
    body = {"lora_name": "raw", "lora_path": str(adapter)}
    assert call(f"{served.url}/v1/load_lora_adapter", body).status == 200
    wait_until(lambda: remembered(served) == ["raw"])
    restart(served)
    assert roots(served.url)["raw"] == str(adapter)


def test_kill_9_of_the_supervisor_leaves_no_process(serve: Callable[..., Served]) -> None:
    served = serve(replicas=2).wait_ready()
    children = keeper.descendants(served.process.pid)
    assert len(children) >= 4
    served.process.kill()
    wait_until(lambda: not any(is_alive(pid) for pid in children), seconds=10)


def test_kill_9_of_a_keeper_leaves_no_process_and_the_replica_comes_back(
    serve: Callable[..., Served],
) -> None:
    served = serve(restart={"first_delay_s": 0.2}).wait_ready()
    engine = served.engine_of(0)
    os.kill(served.keepers()[0], signal.SIGKILL)
    wait_until(lambda: not is_alive(engine))
    wait_until(lambda: served.output().count("replica 0: healthy") == 2)


def test_kill_9_of_a_keeper_while_starting_ends_the_engine_and_the_command(
    serve: Callable[..., Served],
) -> None:
    served = serve(extra_args={"startup-seconds": 60})
    wait_until(lambda: len(keeper.descendants(served.process.pid)) == 2)
    [kept, engine] = keeper.descendants(served.process.pid)
    os.kill(kept, signal.SIGKILL)
    assert served.process.wait(20) == 1
    wait_until(lambda: not is_alive(engine))


def test_a_full_disk_does_not_stop_the_serving(serve: Callable[..., Served]) -> None:
    served = serve(console=Path("/dev/full"), log=Path("/dev/full"))
    wait_until(lambda: answers(served.url))
    body = {"model": "tiny", "prompt": "x", "max_tokens": 1}
    assert call(f"{served.url}/v1/completions", body).status == 200
    assert served.stop() == 0


def test_nohup_is_respected(serve: Callable[..., Served]) -> None:
    served = serve(nohup=True).wait_ready()
    served.process.send_signal(signal.SIGHUP)
    time.sleep(0.5)
    assert call(f"{served.url}/health").status == 200


def test_a_key_in_the_configs_environment_is_asked_for_and_used(serve: Callable[..., Served]) -> None:
    served = serve(environment={"VLLM_API_KEY": "k3y"}).wait_ready()
    assert call(f"{served.url}/v1/models").status == 401
    assert call(f"{served.url}/v1/models", key="k3y").status == 200
    everything = "".join(file.read_text() for file in served.run.rglob("*") if file.is_file())
    assert "k3y" not in everything


@pytest.mark.parametrize("host", ["0.0.0.0", "::1", "localhost"])
def test_servers_on_other_addresses_are_found_healthy(serve: Callable[..., Served], host: str) -> None:
    served = serve(host=host).wait_ready()
    assert "replica 0: healthy" in served.output()


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
    assert not any(is_alive(pid) for pid in children)


def test_a_port_in_use_is_bad_input(serve: Callable[..., Served]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        served = serve(port=taken.getsockname()[1])
        assert served.process.wait(20) == 2
    assert "is in use" in served.output()


def test_a_second_server_on_a_port_is_refused_while_the_first_still_starts(
    serve: Callable[..., Served],
) -> None:
    port = free_port()
    first = serve(port=port, extra_args={"startup-seconds": 30})
    wait_until(lambda: bool(first.keepers()))
    second = serve(port=port)
    assert second.process.wait(20) == 2
    assert f"another seatrial serve holds http://127.0.0.1:{port}" in second.output()


def test_a_replica_that_no_longer_answers_is_started_again(serve: Callable[..., Served]) -> None:
    served = serve(restart={"first_delay_s": 0.2, "unresponsive_s": 1}).wait_ready()
    hung = served.engine_of(0)
    os.kill(hung, signal.SIGSTOP)
    wait_until(lambda: "ending it" in served.output(), seconds=60)
    wait_until(lambda: served.output().count("replica 0: healthy") == 2, seconds=60)
    assert not is_alive(hung)


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

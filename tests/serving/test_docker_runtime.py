"""`seatrial serve` with `runtime: docker`: the stand-in in a container, in place of vLLM's image."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from docker_engine import DockerEngine, docker_engine, stub_image
from http_client import call
from served import Served, wait_until

from seatrial.serving.adapters.random import make_random
from seatrial.serving.container import container_name
from seatrial.serving.models.catalog import make_own
from seatrial.serving.ports import free_port

pytestmark = pytest.mark.docker

STUB = {"engine": {"name": "stub"}, "model_id": "tiny", "enable_lora": True}
COMMAND = ["python3", "-m", "seatrial.serving.stub", "serve"]
HELLO = [{"role": "user", "content": "hello there"}]


@pytest.fixture(scope="session")
def docker() -> Iterator[DockerEngine]:
    with docker_engine() as engine:
        yield engine


@pytest.fixture(scope="session")
def image(docker: DockerEngine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with stub_image(docker, tmp_path_factory.mktemp("image")) as name:
        yield name


@pytest.fixture
def serve(
    docker: DockerEngine, image: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[..., Served]]:
    """Start `seatrial serve` on a container, with nothing in SEATRIAL_HOME and the hub's cache yet."""
    monkeypatch.setenv("SEATRIAL_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hub"))
    if docker.host:
        monkeypatch.setenv("DOCKER_HOST", docker.host)
    started: list[Served] = []

    def start(**settings: Any) -> Served:
        config = STUB | {"port": free_port(), "runtime": "docker", "restart": {"first_delay_s": 0.2}}
        config["docker"] = {"image": image, "entrypoint": COMMAND} | settings.pop("docker", {})
        started.append(Served(config | settings, tmp_path / f"serve-{len(started)}"))
        return started[-1]

    yield start
    for served in started:
        if served.process.poll() is None:
            served.stop()
        docker("rm", "--force", *(container_name(port) for port in served.ports))


@pytest.fixture
def adapter(tmp_path: Path) -> Callable[[str], Path]:
    """Makes an adapter of this name for the model."""
    model = make_own("tiny", print, tmp_path / "tiny")
    return lambda name: make_random(model, tmp_path / "adapters" / name, seed=len(name))


def name_of(served: Served) -> str:
    return container_name(served.ports[0])


def models(served: Served) -> dict[str, str]:
    """What is served, and where the container finds it."""
    return {card["id"]: card["root"] for card in call(f"{served.url}/v1/models").json["data"]}


def answer(served: Served, model: str) -> str:
    body = {"model": model, "messages": HELLO, "max_tokens": 4}
    said = call(f"{served.url}/v1/chat/completions", body).json
    assert said["model"] == model
    return str(said["choices"][0]["message"]["content"])


def test_a_container_serves_the_model_and_its_adapters(
    serve: Callable[..., Served], docker: DockerEngine, adapter: Callable[[str], Path]
) -> None:
    served = serve(lora_modules={"first": str(adapter("first"))}).wait_ready()
    assert docker.containers(name_of(served))
    assert call(f"{served.url}/health").status == 200
    listed = models(served)
    assert listed.pop("tiny") == "/seatrial/model"
    assert [name.partition("@")[0] for name in listed] == ["first", "first"]
    assert len(set(listed.values())) == 1
    assert answer(served, "tiny")
    assert answer(served, "first")
    log = (served.run / "logs" / "replica-0.log").read_text()
    assert f"stub ready on {served.url}" in log


def test_an_adapter_loaded_later_is_found_in_the_container_also_after_a_restart(
    serve: Callable[..., Served], docker: DockerEngine, adapter: Callable[[str], Path]
) -> None:
    served = serve().wait_ready()
    command = [sys.executable, "-m", "seatrial", "adapters", "load", "sql", str(adapter("sql"))]
    done = subprocess.run([*command, "--url", served.url], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    loaded = models(served)
    assert {name.partition("@")[0] for name in loaded} == {"tiny", "sql"}
    assert answer(served, "sql")
    docker("kill", name_of(served))
    wait_until(lambda: served.output().count("replica 0: healthy") == 2)
    assert models(served) == loaded


def test_a_killed_container_is_started_again(serve: Callable[..., Served], docker: DockerEngine) -> None:
    served = serve().wait_ready()
    (killed,) = docker.containers(name_of(served))
    docker("kill", killed)
    wait_until(lambda: served.output().count("replica 0: healthy") == 2)
    assert docker.containers(name_of(served)) != [killed]
    assert answer(served, "tiny")


def test_sigterm_ends_the_container_and_exits_0(serve: Callable[..., Served], docker: DockerEngine) -> None:
    served = serve().wait_ready()
    assert served.stop() == 0
    assert docker.containers(name_of(served)) == []


def test_kill_9_of_the_supervisor_leaves_no_container(
    serve: Callable[..., Served], docker: DockerEngine
) -> None:
    served = serve().wait_ready()
    served.process.kill()
    served.process.wait()
    wait_until(lambda: docker.containers(name_of(served)) == [], seconds=10)


def test_kill_9_of_the_keeper_leaves_no_container(serve: Callable[..., Served], docker: DockerEngine) -> None:
    served = serve(restart={"limit": 0}).wait_ready()
    os.kill(served.keepers()[0], signal.SIGKILL)
    assert served.process.wait(20) == 1
    assert docker.containers(name_of(served)) == []


def test_the_port_of_a_server_that_still_starts_is_not_taken_from_it(
    serve: Callable[..., Served], docker: DockerEngine
) -> None:
    first = serve(extra_args={"startup-seconds": 60})
    wait_until(lambda: docker.containers(name_of(first)) != [])
    wait_until(lambda: docker("inspect", "--format", "{{.State.Running}}", name_of(first)).strip() == "true")
    second = serve(port=first.ports[0])
    assert second.process.wait(20) == 2
    assert (
        f"cure: choose another port with --port, or end it: docker rm --force {name_of(first)}"
        in second.output()
    )
    assert first.process.poll() is None


def test_the_key_reaches_the_container_and_no_command_line(
    serve: Callable[..., Served], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VLLM_API_KEY", "a-very-secret-key")
    served = serve().wait_ready()
    assert call(f"{served.url}/v1/models").status == 401
    assert call(f"{served.url}/v1/models", key="a-very-secret-key").status == 200
    shown = Path(f"/proc/{served.engine_of(0)}/cmdline").read_bytes()
    assert b"VLLM_API_KEY" in shown
    assert b"a-very-secret-key" not in shown
    assert "a-very-secret-key" not in (served.run / "run.json").read_text()


def assert_refused(served: Served, code: int, *says: str) -> None:
    assert served.process.wait(60) == code
    for words in (*says, "  cure: "):
        assert words in served.output()
    assert "Traceback" not in served.output()


class EmptyRegistry(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        known = self.path == "/v2/"
        body = (
            b"{}" if known else b'{"errors": [{"code": "MANIFEST_UNKNOWN", "message": "manifest unknown"}]}'
        )
        self.send_response(200 if known else 404)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)

    do_HEAD = do_GET

    def log_message(self, format: str, *args: object) -> None:
        pass


def test_an_image_that_does_not_exist_is_bad_input(serve: Callable[..., Served]) -> None:
    with HTTPServer(("127.0.0.1", 0), EmptyRegistry) as registry:
        threading.Thread(target=registry.serve_forever, daemon=True).start()
        served = serve(docker={"image": f"localhost:{registry.server_port}/none:1"})
        assert_refused(
            served, 2, "died while fetching the image", "the image was not found", "check docker.image"
        )
        registry.shutdown()


def test_a_registry_out_of_reach_is_told_apart_from_it(serve: Callable[..., Served]) -> None:
    served = serve(docker={"image": f"localhost:{free_port()}/none:1"})
    assert_refused(served, 1, "its registry could not be reached", "docker load")


def test_a_command_that_the_image_has_not_is_bad_input(serve: Callable[..., Served]) -> None:
    served = serve(docker={"entrypoint": ["vllm", "serve"]})
    assert_refused(served, 2, "the image has no such command", "set docker.entrypoint")


def test_an_engine_that_does_not_answer_is_found_before_anything_starts(
    serve: Callable[..., Served], monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setenv("DOCKER_HOST", "unix:///no/such/socket")
        served = serve()
    assert_refused(served, 2, "no Docker engine answers", "start it")
    assert not served.run.exists()

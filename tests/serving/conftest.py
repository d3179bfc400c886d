"""Engines as fixtures. `engine` is every engine that keeps the contract; the suite runs once with each."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest
from engine_process import EngineUnderTest, StubProcess, running_stub, write_adapter
from served import Served

from seatrial.serving.adapters.random import make_random
from seatrial.serving.hardware import gpus
from seatrial.serving.models.catalog import make_own
from seatrial.serving.ports import free_port


@pytest.fixture
def stub() -> Iterator[Callable[..., StubProcess]]:
    """Start a stand-in with these flags and environment variables; it ends with the test."""
    with ExitStack() as stack:
        yield lambda *flags, **variables: stack.enter_context(
            running_stub("seatrial", "stub", "--port", "0", *flags, **variables)
        )


@pytest.fixture
def stub_without_tools() -> Iterator[StubProcess]:
    """In place of vLLM and started as vLLM often is: without a tool-call parser."""
    with running_stub("seatrial.serving.stub", "serve", "tiny", "--port", "0") as started:
        yield started


@pytest.fixture(scope="session")
def stub_engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EngineUnderTest]:
    adapters = tmp_path_factory.mktemp("adapters")
    a, b = write_adapter(adapters / "a"), write_adapter(adapters / "b")
    flags = ("--model", "tiny", "--max-model-len", "2048", "--max-loras", "2")
    with running_stub("seatrial", "stub", "--port", "0", *flags) as started:
        yield EngineUnderTest(started.url, "tiny", ("adapter-a", a), ("adapter-b", b))


@pytest.fixture(scope="session")
def vllm_engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EngineUnderTest]:
    """A real vLLM on a tiny model, served as a user would."""
    directory = tmp_path_factory.mktemp("vllm")
    model = make_own("tiny", print)
    a = make_random(model, directory / "a", seed=1)
    b = make_random(model, directory / "b", seed=2)
    config = {
        "model_id": "tiny",
        "port": free_port(),
        "enable_lora": True,
        "max_model_len": 1024,
        # So that an answer does not depend on what else is in the batch; a GPU has no LoRA in float32.
        "dtype": "auto" if gpus() else "float32",
        "cpu_kv_cache_gib": 1,
        "environment": {"VLLM_SERVER_DEV_MODE": "1"},  # for /reset_prefix_cache
    }
    served = Served(config, directory / "serve")
    try:
        served.wait_ready(seconds=300)
        yield EngineUnderTest(served.url, "tiny", ("adapter-a", a), ("adapter-b", b))
        assert served.stop() == 0
    finally:
        served.kill_all()


@pytest.fixture(scope="session", params=["stub", pytest.param("vllm", marks=pytest.mark.vllm)])
def engine(request: pytest.FixtureRequest) -> EngineUnderTest:
    found: EngineUnderTest = request.getfixturevalue(f"{request.param}_engine")
    return found

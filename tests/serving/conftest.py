"""Engines as fixtures. `engine` is every engine that keeps the contract; the suite runs once with each."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest
from engine_process import EngineUnderTest, StubProcess, running_stub, write_adapter


@pytest.fixture
def stub() -> Iterator[Callable[..., StubProcess]]:
    """Start a stand-in with these flags and environment variables; it ends with the test."""
    with ExitStack() as stack:
        yield lambda *flags, **variables: stack.enter_context(
            running_stub("seatrial", "stub", "--port", "0", *flags, **variables)
        )


@pytest.fixture(scope="session")
def stub_engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EngineUnderTest]:
    adapters = tmp_path_factory.mktemp("adapters")
    a, b = write_adapter(adapters / "a"), write_adapter(adapters / "b")
    flags = ("--model", "tiny", "--max-model-len", "2048", "--max-loras", "2")
    with running_stub("seatrial", "stub", "--port", "0", *flags) as started:
        yield EngineUnderTest(started.url, "tiny", ("adapter-a", a), ("adapter-b", b))


@pytest.fixture(scope="session", params=["stub", pytest.param("vllm", marks=pytest.mark.vllm)])
def engine(request: pytest.FixtureRequest) -> EngineUnderTest:
    found: EngineUnderTest = request.getfixturevalue(f"{request.param}_engine")
    return found

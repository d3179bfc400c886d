"""Adapters on several servers at once: on all of them, or as it was before."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest
from engine_process import StubProcess
from http_client import call

from seatrial.errors import AdapterRefused, BadInput, ServerError
from seatrial.serving.adapters.adapter import Adapter
from seatrial.serving.adapters.live import distance, load, tells_versions_apart, unload
from seatrial.serving.adapters.random import make_random
from seatrial.serving.models.catalog import make_own

Stub = Callable[..., StubProcess]


@pytest.fixture
def adapters(tmp_path: Path) -> list[Adapter]:
    model = make_own("tiny", print)
    return [Adapter.read(make_random(model, tmp_path / str(seed), seed=seed, rank=16)) for seed in (1, 2)]


def roots(url: str) -> dict[str, str]:
    cards = call(f"{url}/v1/models").json["data"]
    return {card["id"]: card["root"] for card in cards if card["parent"]}


def do_load(name: str, adapter: Adapter, *servers: StubProcess) -> None:
    asyncio.run(load(name, adapter, str(adapter.directory), [server.url for server in servers]))


def test_an_adapter_is_loaded_on_every_server_under_both_names(stub: Stub, adapters: list[Adapter]) -> None:
    one, two = stub("--model", "tiny"), stub("--model", "tiny")
    do_load("sql", adapters[0], one, two)
    assert sorted(roots(one.url)) == sorted(roots(two.url)) == ["sql", adapters[0].version_of("sql")]


def test_when_one_server_refuses_the_others_are_as_before(stub: Stub, adapters: list[Adapter]) -> None:
    one, narrow = stub("--model", "tiny"), stub("--model", "tiny", "--max-lora-rank", "8")
    with pytest.raises(AdapterRefused, match="max_lora_rank"):
        do_load("sql", adapters[0], one, narrow)
    assert roots(one.url) == roots(narrow.url) == {}


def test_when_a_server_is_gone_an_alias_keeps_its_meaning(stub: Stub, adapters: list[Adapter]) -> None:
    one, two = stub("--model", "tiny"), stub("--model", "tiny")
    do_load("sql", adapters[0], one, two)
    before = roots(one.url)
    two.process.kill()
    with pytest.raises(ServerError):
        do_load("sql", adapters[1], one, two)
    assert roots(one.url) == before


def test_a_version_that_was_there_before_survives_a_failed_load(stub: Stub, adapters: list[Adapter]) -> None:
    one, two = stub("--model", "tiny"), stub("--model", "tiny")
    do_load("sql", adapters[0], one)
    before = roots(one.url)
    two.process.kill()
    with pytest.raises(ServerError):
        do_load("sql", adapters[0], one, two)
    assert roots(one.url) == before


def test_an_alias_moves_to_the_newest_and_the_old_version_stays(stub: Stub, adapters: list[Adapter]) -> None:
    server = stub("--model", "tiny")
    do_load("sql", adapters[0], server)
    do_load("sql", adapters[1], server)
    seen = roots(server.url)
    versions = [adapter.version_of("sql") for adapter in adapters]
    assert sorted(seen) == sorted(["sql", *versions])
    assert seen["sql"] == seen[versions[1]] != seen[versions[0]]


def test_unloading_a_version_takes_an_alias_that_means_it_along(stub: Stub, adapters: list[Adapter]) -> None:
    server = stub("--model", "tiny")
    for adapter in adapters:
        do_load("sql", adapter, server)
    old, new = (adapter.version_of("sql") for adapter in adapters)
    asyncio.run(unload(old, [server.url]))
    assert sorted(roots(server.url)) == sorted(["sql", new])
    asyncio.run(unload(new, [server.url]))
    assert roots(server.url) == {}


@pytest.mark.parametrize("name", ["", "a@b", "a b", "tiny"])
def test_names_that_cannot_be_used_are_refused(stub: Stub, adapters: list[Adapter], name: str) -> None:
    server = stub("--model", "tiny")
    with pytest.raises(BadInput):
        do_load(name, adapters[0], server)
    assert roots(server.url) == {}


def test_a_server_is_known_by_any_of_its_names(stub: Stub, adapters: list[Adapter]) -> None:
    server = stub("--model", "tiny")
    renamed = server.url.replace("127.0.0.1", "localhost")
    asyncio.run(load("sql", adapters[0], str(adapters[0].directory), [renamed]))
    # The stored copy, not the directory that may be trained over.
    assert roots(server.url)["sql"] != str(adapters[0].directory)


@pytest.mark.parametrize(
    ("version", "safe"),
    [
        ("0.32.0+cpu", True),
        ("0.33.1", True),
        ("1.0.0", True),
        ("0.25.1", False),
        ("0.9.2", False),
        ("", False),
    ],
)
def test_an_alias_is_moved_only_where_the_cache_tells_its_versions_apart(version: str, safe: bool) -> None:
    assert tells_versions_apart(version) is safe


def test_odds_without_a_token_in_common_are_far_apart() -> None:
    assert distance({"a": -0.1}, {"a": -0.3}) == pytest.approx(0.2)
    assert distance({"a": -0.1}, {"b": -0.1}) >= 1

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest
from engine_process import StubProcess, write_adapter
from http_client import call

from seatrial.serving.adapters import journal
from seatrial.serving.adapters.memory import Memory
from seatrial.serving.client import Client

Stub = Callable[..., StubProcess]
URL = "http://127.0.0.1:8000"


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEATRIAL_HOME", str(tmp_path / "home"))


def roots(url: str) -> dict[str, str]:
    cards = call(f"{url}/v1/models").json["data"]
    return {card["id"]: card["root"] for card in cards if card["parent"]}


def test_a_server_is_brought_to_what_is_wanted(stub: Stub, tmp_path: Path) -> None:
    url = stub("--model", "tiny").url
    first, second = (str(write_adapter(tmp_path / name)) for name in ("first", "second"))

    async def bring(wanted: dict[str, str]) -> tuple[list[str], dict[str, str]]:
        async with Client(url) as client:
            return await Memory(url, wanted).restore(client)

    assert asyncio.run(bring({"a": first, "b": first})) == (["a", "b"], {})
    done, failed = asyncio.run(bring({"a": second, "c": str(tmp_path / "nothing")}))
    assert (done, list(failed)) == (["a"], ["c"])
    assert roots(url) == {"a": second}


def test_what_other_clients_loaded_is_seen(stub: Stub, tmp_path: Path) -> None:
    url = stub("--model", "tiny").url
    path = str(write_adapter(tmp_path / "raw"))
    call(f"{url}/v1/load_lora_adapter", {"lora_name": "raw", "lora_path": path})
    memory = Memory(url, {})

    async def look_twice() -> list[bool]:
        async with Client(url) as client:
            return [await memory.look(client), await memory.look(client)]

    assert asyncio.run(look_twice()) == [True, False]
    assert memory.wanted == {"raw": path}


def test_what_our_commands_did_since_the_last_look_is_added() -> None:
    journal.begin(URL)
    journal.write(URL, "long ago", "/p")
    memory = Memory(URL, {"a": "/a", "b": "/b"})
    journal.write(URL, "c", "/c")
    journal.write(URL, "a", None)
    memory.catch_up()
    assert memory.wanted == {"b": "/b", "c": "/c"}


def test_a_journal_is_kept_only_for_servers_that_have_one() -> None:
    journal.write(URL, "before", "/p")
    journal.begin(URL)
    journal.write("http://localhost:8000", "a", "/a")
    assert list(journal.since(URL, 0)) == [("a", "/a")]
    journal.end(URL)
    assert list(journal.since(URL, 0)) == []


def test_a_line_that_was_cut_is_left_out(tmp_path: Path) -> None:
    journal.begin(URL)
    journal.write(URL, "a", "/a")
    [place] = (tmp_path / "home" / "servers").glob("*.adapters")
    place.write_text(place.read_text() + '{"at": 1')
    assert list(journal.since(URL, 0)) == [("a", "/a")]

"""A plain HTTP client for tests: statuses are values, not exceptions."""

import json
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

PATIENCE_SECONDS = 120


@dataclass(frozen=True)
class Said:
    status: int
    text: str
    kind: str = ""

    @property
    def json(self) -> Any:
        return json.loads(self.text)

    @property
    def events(self) -> list[str]:
        """The data of server-sent events."""
        return [line.removeprefix("data: ") for line in self.text.splitlines() if line.startswith("data: ")]

    @property
    def chunks(self) -> list[dict[str, Any]]:
        return [json.loads(event) for event in self.events if event != "[DONE]"]


def call(url: str, body: object = None, *, key: str = "", method: str | None = None) -> Said:
    """GET, or POST when there is a body."""
    headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {key}"} if key else {})
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data=data, headers=headers, method=method)
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE_SECONDS) as response:
            return Said(response.status, response.read().decode(), response.headers.get("Content-Type") or "")
    except urllib.error.HTTPError as error:
        return Said(error.code, error.read().decode(), error.headers.get("Content-Type") or "")


def metric(url: str, name: str) -> float:
    """The value of a metric, added up over its labels."""
    lines = call(f"{url}/metrics").text.splitlines()
    values = [float(line.rpartition(" ")[2]) for line in lines if line.split("{")[0].split(" ")[0] == name]
    assert values, f"no metric {name}"
    return sum(values)


def eventually(holds: Callable[[], bool], seconds: float = 10) -> bool:
    """Whether it holds before the time is over: some things happen just after the answer."""
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True

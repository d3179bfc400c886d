"""Results of benchmarks as files that say where and when they were measured."""

import os
import platform
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from seatrial.files import write_json
from seatrial.runs import git_state

HERE = Path(__file__).parent


def write_result(name: str, values: dict[str, Any]) -> Path:
    path = HERE / "results" / f"{name}.json"
    path.parent.mkdir(exist_ok=True)
    machine = {"system": platform.platform(), "cores": os.cpu_count(), "python": platform.python_version()}
    state = git_state(HERE)
    head = {"benchmark": name, "date": datetime.now(UTC).date().isoformat(), "machine": machine, "git": state}
    write_json(path, head | values)
    return path

"""How long short commands take: every verb's `--help`, a set-up that has nothing to do, a pool that hangs."""

import json
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from results import write_result

from seatrial.cli.main import VERBS

RUNS = 9


def seconds(command: list[str], runs: int = RUNS) -> float:
    """The median of several runs."""
    times = []
    for _ in range(runs):
        begin = time.perf_counter()
        subprocess.run(command, stdout=subprocess.DEVNULL, check=False)
        times.append(time.perf_counter() - begin)
    return round(statistics.median(times), 4)


def hanging_pool(seatrial: str) -> float:
    """A check of 32 endpoints that accept connections and never answer."""
    with socket.socket() as silent, tempfile.TemporaryDirectory() as folder:
        silent.bind(("127.0.0.1", 0))
        silent.listen(64)
        pool = {"model": [{"ip_addr": "127.0.0.1", "port": silent.getsockname()[1]}] * 32}
        path = Path(folder) / "pool.json"
        path.write_text(json.dumps(pool))
        return seconds([seatrial, "endpoints", "check", str(path)], runs=3)


def main() -> None:
    seatrial = str(Path(sys.executable).with_name("seatrial"))
    bare = seconds([sys.executable, "-c", "pass"])
    verbs = {"": seconds([seatrial, "--help"])}
    verbs |= {verb: seconds([seatrial, verb, "--help"]) for verb in VERBS}
    result = {
        "unit": "seconds, median",
        "bare_python": bare,
        "help": verbs,
        "worst_help": max(verbs.values()),
        "setup_engine_again": seconds([seatrial, "setup", "engine"]),
        "endpoints_check_of_32_that_hang": hanging_pool(seatrial),
    }
    print(write_result("command_line", result))
    print(
        f"bare Python {bare} s, worst --help {result['worst_help']} s, set-up again {result['setup_engine_again']} s"
    )


if __name__ == "__main__":
    main()

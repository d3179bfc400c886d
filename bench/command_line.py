"""How long the command line takes to answer `--help`: the median of several runs of each verb."""

import statistics
import subprocess
import sys
import time
from pathlib import Path

from results import write_result

from seatrial.cli.main import VERBS

RUNS = 9


def seconds(command: list[str]) -> float:
    times = []
    for _ in range(RUNS):
        begin = time.perf_counter()
        subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
        times.append(time.perf_counter() - begin)
    return round(statistics.median(times), 4)


def main() -> None:
    seatrial = str(Path(sys.executable).with_name("seatrial"))
    bare = seconds([sys.executable, "-c", "pass"])
    verbs = {"": seconds([seatrial, "--help"])}
    verbs |= {verb: seconds([seatrial, verb, "--help"]) for verb in VERBS}
    result = {
        "unit": "seconds, median",
        "runs": RUNS,
        "bare_python": bare,
        "help": verbs,
        "worst": max(verbs.values()),
    }
    print(write_result("command_line", result))
    print(f"bare Python {bare} s, worst --help {result['worst']} s")


if __name__ == "__main__":
    main()

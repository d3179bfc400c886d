"""A place to make environments in, with steps that are small Python commands instead of installations.

As a script it makes one in a process of its own, which a test can then kill: `environment_yard.py FOLDER`.
"""

import io
import subprocess
import sys
import time
from pathlib import Path
from typing import TextIO

from seatrial.serving.environments.environment import Environment
from seatrial.serving.environments.maker import make
from seatrial.serving.environments.progress import Progress
from seatrial.serving.environments.recipes import FILE, Recipe, Step

VERSION = "{}.{}".format(*sys.version_info)
# The journal is how a test sees which steps were run.
WRITE = "import sys; open(sys.argv[1], 'a').write(sys.argv[2] + '\\n')"


class Yard:
    def __init__(self, folder: Path, said: TextIO | None = None) -> None:
        self.folder = folder
        self.environment = Environment("part", folder / "environments" / "part")
        self.journal = folder / "journal"
        self.said = said or io.StringIO()

    def writes(self, name: str, file: Path | None = None) -> Step:
        return Step(name, ("-c", WRITE, str(self.journal), name, *([FILE] if file else [])), file)

    def make(self, *steps: Step, fresh: bool = False, variant: str = "cpu") -> float:
        recipe = Recipe("part", variant, (VERSION,), steps, pip=False)
        return make(self.environment, recipe, Progress("part", self.said), fresh=fresh)

    def said_so_far(self) -> str:
        self.said.seek(0)
        return self.said.read()

    def journal_lines(self) -> list[str]:
        return self.journal.read_text().splitlines() if self.journal.exists() else []

    def slow_steps(self) -> tuple[Step, ...]:
        """The second of them waits until `let_go`."""
        waiting, go = self.folder / "waiting", self.folder / "go"
        code = (
            f"import pathlib, time; pathlib.Path({str(waiting)!r}).touch()\n"
            f"while not pathlib.Path({str(go)!r}).exists(): time.sleep(0.02)"
        )
        return self.writes("one"), Step("slow", ("-c", code)), self.writes("three")

    def let_go(self) -> None:
        (self.folder / "go").touch()

    def make_elsewhere(self) -> subprocess.Popen[str]:
        """Another process that makes the slow steps."""
        return subprocess.Popen([sys.executable, __file__, self.folder], stderr=subprocess.PIPE, text=True)

    def wait_until_slow(self) -> None:
        """Until another process stands in the slow step."""
        end = time.monotonic() + 60
        while not (self.folder / "waiting").exists():
            assert time.monotonic() < end, "the slow step was not reached"
            time.sleep(0.02)


if __name__ == "__main__":
    there = Yard(Path(sys.argv[1]), sys.stderr)
    there.make(*there.slow_steps())

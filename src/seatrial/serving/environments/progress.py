"""One line a step: alive on a terminal, plain elsewhere."""

import sys
from typing import TextIO


class Progress:
    def __init__(self, name: str, stream: TextIO | None = None) -> None:
        self.name = name
        self.stream = stream or sys.stderr
        self.label = ""

    def say(self, text: str) -> None:
        print(f"{self.name}: {text}", file=self.stream, flush=True)

    def begin(self, step: str, number: int, count: int) -> None:
        self.label = f"[{number}/{count}] {step}"
        self.tick(0)

    def tick(self, seconds: float) -> None:
        if self.stream.isatty():
            print(f"\r{self.name}: {self.label} ... {seconds:.0f} s", end="", file=self.stream, flush=True)

    def end(self, seconds: float) -> None:
        alive = self.stream.isatty()
        # The spaces cover what is left of a longer line.
        print(end="\r" if alive else "", file=self.stream)
        self.say(f"{self.label}: {seconds:.1f} s" + " " * 4 * alive)

    def abandon(self) -> None:
        """The step did not end well; leave its line standing."""
        if self.stream.isatty():
            print(file=self.stream)

"""What of an environment is done: `steps.json`, written whole after each step."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from seatrial import files
from seatrial.serving.environments.recipes import Recipe, Step


@dataclass(frozen=True)
class DoneStep:
    name: str
    digest: str
    seconds: float


@dataclass
class Record:
    base: str = ""
    """The digest of what the bare environment was made for."""
    ready: bool = False
    steps: list[DoneStep] = field(default_factory=list)

    @classmethod
    def load(cls, path: Path) -> "Record":
        """An absent or unreadable record is that of an environment where nothing is done."""
        try:
            stored = json.loads(path.read_text())
            return cls(stored["base"], stored["ready"], [DoneStep(**step) for step in stored["steps"]])
        except (OSError, ValueError, KeyError, TypeError):
            return cls()

    def save(self, path: Path) -> None:
        files.write_json(path, asdict(self))

    def done_of(self, steps: Sequence[Step]) -> int:
        """How many of `steps`, from the first on, are done as they stand today."""
        pairs = zip(steps, self.steps, strict=False)
        return next(
            (i for i, (s, d) in enumerate(pairs) if s.digest() != d.digest), min(len(steps), len(self.steps))
        )

    def is_complete(self, recipe: Recipe) -> bool:
        return (
            self.ready
            and self.base == recipe.base_digest()
            and len(self.steps) == len(recipe.steps) == self.done_of(recipe.steps)
        )

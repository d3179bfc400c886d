"""Makes an environment step by step, and continues where an earlier set-up stopped."""

import os
import shutil
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

from seatrial.errors import MissingPart, SetupError
from seatrial.serving.environments import interpreters
from seatrial.serving.environments.children import child_variables, run_logged
from seatrial.serving.environments.cures import cure_for
from seatrial.serving.environments.environment import Environment
from seatrial.serving.environments.lock import Lock, locked
from seatrial.serving.environments.progress import Progress
from seatrial.serving.environments.recipes import Recipe
from seatrial.serving.environments.record import DoneStep, Record

TAIL_LINES = 15


def make(environment: Environment, recipe: Recipe, progress: Progress, *, fresh: bool = False) -> float:
    """Bring `environment` to what `recipe` says; gives the seconds it took. Done steps are not done again."""
    begin = time.monotonic()
    with locked(environment.lock_file, progress.say) as lock:
        maker = Maker(environment, recipe, progress, lock)
        record = Record.load(environment.record_file)
        if fresh or record.base != recipe.base_digest() or not runs(environment.python):
            record = maker.make_bare()
        if not record.is_complete(recipe):
            maker.fill(record)
    return time.monotonic() - begin


@dataclass(frozen=True)
class Maker:
    """One set-up at work, under the environment's lock."""

    environment: Environment
    recipe: Recipe
    progress: Progress
    lock: Lock

    def make_bare(self) -> Record:
        """An environment with nothing in it, in place of whatever was there."""
        path = self.environment.path
        try:
            python = interpreters.find(self.recipe.pythons, os.environ)
        except interpreters.NoInterpreter as error:
            raise MissingPart(f"{self.recipe.name}: {error}", cure=error.cure, detail=error.detail) from error
        if path.exists():
            shutil.rmtree(path)
        self.environment.logs.mkdir(parents=True)
        self.progress.say(f"making it in {path} with {python}")
        self.run("python", 1, self.recipe.base_command(python, path))
        record = Record(base=self.recipe.base_digest())
        record.save(self.environment.record_file)
        return record

    def fill(self, record: Record) -> None:
        """Do the steps from the first that is not done, or has changed, to the last."""
        steps = self.recipe.steps
        done = record.done_of(steps)
        record.ready = False
        record.steps = record.steps[:done]
        record.save(self.environment.record_file)
        if done:
            self.progress.say(f"continuing after {steps[done - 1].name}")
        for number, step in enumerate(steps[done:], start=done + 2):
            # Taken before the step: a file that changes meanwhile makes it run again next time.
            digest = step.digest()
            seconds = self.run(step.name, number, step.command(self.environment.python))
            record.steps.append(DoneStep(step.name, digest, round(seconds, 1)))
            record.save(self.environment.record_file)
        record.ready = True
        record.save(self.environment.record_file)

    def run(self, name: str, number: int, command: list[str]) -> float:
        log = self.environment.logs / f"{number:02d}-{name}.log"
        log.parent.mkdir(exist_ok=True)
        begin = time.monotonic()
        self.progress.begin(name, number, 1 + len(self.recipe.steps))
        try:
            status = run_logged(
                command,
                log,
                inherit=[self.lock.handle],
                started=self.lock.note,
                tick=self.progress.tick,
            )
            if status != 0:
                raise failure(self.environment.name, name, status, log)
        except BaseException:
            self.progress.abandon()
            raise
        seconds = time.monotonic() - begin
        self.progress.end(seconds)
        return seconds


def failure(name: str, step: str, status: int, log: Path) -> SetupError:
    text = log.read_text(errors="replace")
    return SetupError(
        f"{name}: the step {step!r} failed with status {status}; its log is {log}",
        cure=cure_for(text, name),
        detail="\n".join(text.splitlines()[-TAIL_LINES:]),
    )


def runs(python: Path) -> bool:
    """Whether the environment's interpreter is there and starts; the one it was made from may be gone."""
    try:
        answer = subprocess.run(
            [python, "-c", ""], env=child_variables(os.environ), capture_output=True, timeout=60, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return answer.returncode == 0

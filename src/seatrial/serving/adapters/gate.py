"""The gate: what an adapter must show before it may serve.

The checks read files only; the one that asks the running server is in `live`. Each check says what it found, so
that `seatrial adapters check` can show them all, and the first failure is the reason for a refusal.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

from seatrial.errors import AdapterRefused, BadInput
from seatrial.serving.adapters.adapter import Adapter
from seatrial.serving.adapters.tensors import shapes_of_model
from seatrial.serving.models.catalog import local_directory, same_model

Outcome = Literal["ok", "failed", "skipped"]


@dataclass(frozen=True)
class Finding:
    check: str
    outcome: Outcome
    text: str
    cure: str = ""


@dataclass(frozen=True)
class Base:
    """What is known of the base model an adapter is to run on."""

    name: str
    """A hub id, a directory, or one of our own models."""
    max_lora_rank: int | None = None
    """The server's limit; None when it is not known."""


class _Failed(Exception):
    def __init__(self, text: str, cure: str = "") -> None:
        super().__init__(text)
        self.cure = cure


class _Skipped(Exception):
    pass


def inspect(adapter: Adapter, base: Base | None) -> list[Finding]:
    """Every check's finding. After a damaged file nothing else can be read, so nothing else is checked."""
    findings: list[Finding] = []
    for check, examine in CHECKS.items():
        try:
            findings.append(Finding(check, "ok", examine(adapter, base)))
        except _Skipped as reason:
            findings.append(Finding(check, "skipped", str(reason)))
        except _Failed as failure:
            findings.append(Finding(check, "failed", str(failure), failure.cure))
        except BadInput as error:
            findings.append(Finding(check, "failed", error.message, error.cure))
        if findings[-1].outcome == "failed" and check == "files":
            break
    return findings


def refuse_failures(adapter: Adapter, findings: list[Finding]) -> None:
    for finding in findings:
        if finding.outcome == "failed":
            raise AdapterRefused(
                f"the adapter {adapter.directory} is refused ({finding.check}): {finding.text}",
                cure=finding.cure,
            )


def _files(adapter: Adapter, base: Base | None) -> str:
    modules = adapter.modules()
    if not modules:
        raise _Failed("its weights hold no lora_A and lora_B matrices")
    for module, sides in modules.items():
        if set(sides) != {"A", "B"}:
            raise _Failed(f"{module} has lora_{next(iter(sides))} but not its other half")
    return f"{len(modules)} modules, {adapter.weights.path.stat().st_size / 2**20:.1f} MiB, digest {adapter.digest[:8]}"


def _rank(adapter: Adapter, base: Base | None) -> str:
    if base is None or base.max_lora_rank is None:
        raise _Skipped(f"rank {adapter.rank}; the server's max_lora_rank is not known here")
    if adapter.rank > base.max_lora_rank:
        raise _Failed(
            f"rank {adapter.rank} is larger than the server's max_lora_rank {base.max_lora_rank}",
            f"serve with max_lora_rank: {adapter.rank} or more",
        )
    return f"rank {adapter.rank}, limit {base.max_lora_rank}"


def _base(adapter: Adapter, base: Base | None) -> str:
    if base is None:
        raise _Skipped(f"trained on {adapter.base}; no server or base given to compare with")
    if adapter.base is None:
        raise _Skipped("its config names no base model")
    if not same_model(adapter.base, base.name):
        raise _Failed(
            f"it was trained on {adapter.base}, and this is {base.name}",
            "serve the base it was trained on, or correct base_model_name_or_path if it is only a renamed copy",
        )
    return f"trained on {adapter.base}"


def _modules(adapter: Adapter, base: Base | None) -> str:
    if base is None:
        raise _Skipped("no server or base given to compare with")
    directory = local_directory(base.name)
    shapes = shapes_of_model(directory) if directory else {}
    if not shapes:
        raise _Skipped("the base model's weights are not on this machine")
    find = _finder(shapes)
    for module, sides in adapter.modules().items():
        shape = find(module)
        if shape is None:
            raise _Failed(
                f"the base has no module {module}",
                "train with target_modules of this base; it would answer as the base",
            )
        wanted = (sides["B"].shape[0], sides["A"].shape[1])
        if len(shape) == 2 and wanted != shape:
            raise _Failed(f"{module} is {shape} in the base, and the adapter is made for {wanted}")
    return f"all {len(adapter.modules())} modules are in the base"


def _nonzero(adapter: Adapter, base: Base | None) -> str:
    modules = adapter.modules()
    zero = [module for module, sides in modules.items() if adapter.weights.is_zero(sides["B"].name)]
    if zero:
        raise _Failed(
            f"{len(zero)} of {len(modules)} lora_B matrices are all zero (first: {zero[0]}), so they change nothing",
            "was it saved before the first training step, or were these modules frozen?",
        )
    return "every lora_B has values"


CHECKS: dict[str, Callable[[Adapter, Base | None], str]] = {
    "files": _files,
    "rank": _rank,
    "base": _base,
    "modules": _modules,
    "nonzero": _nonzero,
}


def _finder(shapes: dict[str, tuple[int, ...]]) -> Callable[[str], tuple[int, ...] | None]:
    """Finds a module's weight by its name, or, where wrappers renamed what stands before it, from `layers.` on."""
    by_tail = {tail: shape for name, shape in shapes.items() for tail in _tails(name)}

    def find(module: str) -> tuple[int, ...] | None:
        weight = f"{module}.weight"
        if weight in shapes:
            return shapes[weight]
        return next((by_tail[tail] for tail in _tails(weight) if tail in by_tail), None)

    return find


def _tails(name: str) -> Iterator[str]:
    before, found, after = name.partition("layers.")
    # A vision tower has layers of its own: its tails must not stand in for the language model's.
    if found and "vision" not in before:
        yield found + after

"""A folder imports only what stands above it in the order of docs/architecture.md."""

import ast
from pathlib import Path

import seatrial

ORDER = [
    "__init__",
    "errors",
    "files",
    "secrets",
    "runs",
    "config",
    "serving",
    "routing",
    "workloads",
    "sandbox",
    "measuring",
    "simulation",
    "terminal",
    "orchestra",
    "training",
    "experiment",
    "cli",
    "__main__",
]
PACKAGE = Path(seatrial.__file__).parent


def part_of(module: str) -> str:
    """The folder or root file that a dotted name of ours belongs to."""
    words = module.split(".")
    return words[1] if len(words) > 1 else "__init__"


def imports(file: Path) -> list[str]:
    found = []
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}: relative imports hide where a name comes from"
            # `from seatrial import files` imports the module files, `from seatrial import __version__` does not.
            if node.module == "seatrial":
                found += [f"seatrial.{alias.name}" for alias in node.names if not alias.name.startswith("__")]
            else:
                found.append(node.module or "")
    return [name for name in found if name.split(".")[0] == "seatrial"]


def test_every_part_has_a_place_in_the_order() -> None:
    parts = {
        path.stem for path in PACKAGE.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()
    }
    assert parts <= set(ORDER)


def test_no_part_imports_what_stands_below_it() -> None:
    wrong = []
    for file in PACKAGE.rglob("*.py"):
        own = ORDER.index(file.relative_to(PACKAGE).parts[0].removesuffix(".py"))
        for name in imports(file):
            if ORDER.index(part_of(name)) > own:
                wrong.append(f"{file.relative_to(PACKAGE)} imports {name}")
    assert not wrong


def test_the_order_is_the_one_in_the_documentation() -> None:
    text = (Path(__file__).parents[1] / "docs" / "architecture.md").read_text()
    places = [
        text.index(f"| `{part}") for part in ORDER if not part.startswith("__") and (PACKAGE / part).is_dir()
    ]
    assert places == sorted(places)

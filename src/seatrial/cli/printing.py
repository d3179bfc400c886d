"""How verbs print answers: tables for people, JSON for scripts."""

import json
import os
import sys
from collections.abc import Iterable, Sequence
from typing import Any


def print_json(value: Any) -> None:
    print(json.dumps(value, indent=2, ensure_ascii=False))


def print_table(headings: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Columns as wide as their widest cell, the last one as long as it likes."""
    lines = [tuple(map(str, headings)), *(tuple(map(str, row)) for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(headings))]
    for line in lines:
        cells = [cell.ljust(width) for cell, width in zip(line, widths, strict=True)]
        print("  ".join(cells).rstrip())


def say(line: str) -> None:
    """One line of progress from ourselves."""
    print_line(f"seatrial: {line}")


def print_line(line: str) -> None:
    """Print at once. A reader that has gone or a full disk must not stop the work that is being told of."""
    try:
        print(line, flush=True)
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())

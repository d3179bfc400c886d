"""`seatrial setup engine|train|bench`: makes the isolated environment of a part, or continues to."""

import argparse
import json
import signal
from typing import Any

PARTS = ("engine", "train", "bench")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "parts", nargs="+", choices=PARTS, metavar="PART", help=f"one or more of {', '.join(PARTS)}"
    )
    parser.add_argument("--fresh", action="store_true", help="rebuild from nothing instead of continuing")
    parser.add_argument(
        "--json", action="store_true", help="print path, python, ready and seconds of each part"
    )


def run(args: argparse.Namespace) -> int:
    from seatrial.serving.environments.environment import Environment
    from seatrial.serving.environments.maker import make
    from seatrial.serving.environments.progress import Progress
    from seatrial.serving.environments.recipes import recipes
    from seatrial.serving.hardware import gpus

    # Being asked to end is the same as Ctrl-C: the installer must not outlive us.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    known = recipes(gpu=bool(gpus()))
    made: list[dict[str, Any]] = []
    for part in dict.fromkeys(args.parts):
        environment = Environment.named(part)
        seconds = make(environment, known[part], Progress(part), fresh=args.fresh)
        made.append(
            {
                "part": part,
                "path": str(environment.path),
                "python": str(environment.python),
                "ready": environment.is_ready(),
                "seconds": round(seconds, 1),
            }
        )
        if not args.json:
            print(f"{part}: ready ({environment.path})", flush=True)
    if args.json:
        print(json.dumps(made, indent=2))
    return 0

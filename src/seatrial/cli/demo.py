"""`seatrial demo`: serving and adapters, shown on a small model."""

import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--model", default="smollm2", help="smollm2 (default), tiny, a directory or a hub id")


def run(args: argparse.Namespace) -> int:
    from seatrial.cli.printing import say
    from seatrial.experiment.demo import run_demo

    path = run_demo(args.model, say)
    say(f"stopped; logs and events are in {path}")
    return 0

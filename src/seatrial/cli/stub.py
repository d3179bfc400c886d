"""`seatrial stub`: an engine stand-in that speaks vLLM's HTTP."""

import argparse
import os


def add_arguments(parser: argparse.ArgumentParser) -> None:
    from seatrial.serving.stub.flags import add_flags

    add_flags(parser)


def run(args: argparse.Namespace) -> int:
    from seatrial.serving.stub.flags import settings_of
    from seatrial.serving.stub.server import serve

    return serve(settings_of(args, os.environ))

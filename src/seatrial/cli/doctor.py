"""`seatrial doctor`: what this machine has and lacks."""

import argparse
from pathlib import Path


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--config", type=Path, metavar="FILE", help="also: can this machine hold that config's model?"
    )
    parser.add_argument("--json", action="store_true", help="print the findings for a script")


def run(args: argparse.Namespace) -> int:
    from dataclasses import asdict

    from seatrial.cli.printing import print_json
    from seatrial.config.serve import read_serve_config
    from seatrial.serving.doctor import examine

    findings = examine(read_serve_config(args.config) if args.config else None)
    if args.json:
        print_json([asdict(finding) for finding in findings])
        return 0
    marks = {"ok": "ok", "note": "note", "warning": "WARNING"}
    for finding in findings:
        print(f"{marks[finding.level]:8} {finding.subject:12} {finding.text}")
        if finding.cure:
            print(f"{'':21} cure: {finding.cure}")
    return 0

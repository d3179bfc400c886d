"""`seatrial endpoints check`: a pool of servers, each asked whether it can do its work."""

import argparse
from pathlib import Path


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    check = actions.add_parser("check", help="ask every endpoint at once; exit 1 when one fails")
    check.add_argument(
        "file", type=Path, metavar="FILE", help="model_config_*.json: model to [{ip_addr, port}]"
    )
    check.add_argument("--timeout", type=seconds, metavar="S", help="seconds for each (default 4)")
    check.add_argument("--json", action="store_true", help="print the verdicts for a script")


def seconds(text: str) -> float:
    value = float(text)
    if not value > 0:
        raise ValueError
    return value


def run(args: argparse.Namespace) -> int:
    import asyncio
    from dataclasses import asdict

    from seatrial.cli.printing import print_json, print_table
    from seatrial.config.endpoints import read_pool
    from seatrial.serving.endpoint_checks import TIMEOUT_SECONDS, check_pool

    verdicts = asyncio.run(check_pool(read_pool(args.file), timeout_s=args.timeout or TIMEOUT_SECONDS))
    failed = sum(not verdict.ok for verdict in verdicts)
    if args.json:
        print_json([asdict(verdict) for verdict in verdicts])
        return 1 if failed else 0
    rows = [
        (
            "ok" if v.ok else "FAILED",
            v.model,
            v.url,
            v.max_model_len or "",
            v.tools if v.tools == "ok" else "",
            v.text,
        )
        for v in verdicts
    ]
    print_table(("", "model", "endpoint", "context", "tools", "finding"), rows)
    for verdict in verdicts:
        if verdict.tools not in ("", "ok"):
            print(f"{verdict.url}: {verdict.tools}")
    print(f"{len(verdicts) - failed} of {len(verdicts)} endpoints are fit")
    return 1 if failed else 0

"""`seatrial adapters`: LoRA adapters on live servers."""

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from seatrial.serving.adapters.gate import Finding

DEFAULT_URL = "http://127.0.0.1:8000"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    server = argparse.ArgumentParser(add_help=False)
    server.add_argument(
        "--url",
        action="append",
        metavar="URL",
        help=f"a server, or several by commas or repetition: all of them or none (default {DEFAULT_URL})",
    )
    server.add_argument("--json", action="store_true", help="print the answer for a script")
    actions.add_parser("list", parents=[server], help="what is loaded")
    load = actions.add_parser("load", parents=[server], help="load an adapter that passes the gate")
    load.add_argument("name", help="the plain name; the server also knows it as NAME@hash8")
    load.add_argument("adapter", metavar="PATH_OR_HUB_ID", help="a directory that PEFT saved, or a hub id")
    unload = actions.add_parser(
        "unload", parents=[server], help="unload a version, or a name with all its versions"
    )
    unload.add_argument("name", help="NAME or NAME@hash8")
    check = actions.add_parser("check", parents=[server], help="run the gate without loading")
    check.add_argument("adapter", metavar="PATH_OR_HUB_ID")
    check.add_argument("--base", metavar="MODEL", help="check against this model instead of a live server's")
    check.add_argument("--max-lora-rank", type=int, metavar="R", help="the rank limit to check against")


def run(args: argparse.Namespace) -> int:
    import asyncio

    actions = {"list": _list, "load": _load, "unload": _unload, "check": _check}
    return asyncio.run(actions[args.action](args))


async def _list(args: argparse.Namespace) -> int:
    from seatrial.cli.printing import print_json, print_table
    from seatrial.serving.adapters.live import listing

    found = await listing(_urls(args))
    if args.json:
        print_json(
            [
                {
                    "url": url,
                    "base": base.name,
                    "adapters": [{"name": a.name, "path": a.root} for a in adapters],
                }
                for url, base, adapters in found
            ]
        )
        return 0
    rows = [
        (a.name, _alias_note(a.root, adapters), base.name, a.root, url)
        for url, base, adapters in found
        for a in adapters
    ]
    if rows:
        print_table(("name", "means", "base", "path", "server"), rows)
    else:
        print("no adapters are loaded on " + ", ".join(url for url, _, _ in found))
    return 0


async def _load(args: argparse.Namespace) -> int:
    from seatrial.cli.printing import print_json
    from seatrial.serving.adapters.adapter import Adapter
    from seatrial.serving.adapters.gate import adapter_directory
    from seatrial.serving.adapters.live import load

    adapter = Adapter.read(adapter_directory(args.adapter))
    done = await load(args.name, adapter, args.adapter, _urls(args))
    if args.json:
        print_json([{"url": it.url, "name": it.name, "version": it.version} for it in done])
        return 0
    for it in done:
        print(f"loaded {it.version} (alias {it.name}) on {it.url}")
        _print_findings(it.findings)
    return 0


async def _unload(args: argparse.Namespace) -> int:
    from seatrial.cli.printing import print_json
    from seatrial.serving.adapters.live import unload

    gone = await unload(args.name, _urls(args))
    if args.json:
        print_json(gone)
    else:
        for line in gone:
            print(f"unloaded {line}")
    return 0


async def _check(args: argparse.Namespace) -> int:
    from dataclasses import asdict, replace

    from seatrial.cli.printing import print_json
    from seatrial.errors import ServerError
    from seatrial.serving.adapters.adapter import Adapter
    from seatrial.serving.adapters.gate import Base, adapter_directory, inspect, refuse_failures
    from seatrial.serving.adapters.live import base_on
    from seatrial.serving.client import Client
    from seatrial.serving.models.catalog import resolve_model

    adapter = Adapter.read(adapter_directory(args.adapter))
    base: Base | None = None
    if args.base:
        base = Base(resolve_model(args.base, print, make=False))
    else:
        try:
            async with Client(_urls(args)[0], timeout_s=10) as client:
                base = await base_on(client)
        except ServerError:
            if args.url:
                raise
            print("no server answers and no --base is given: only the files are checked")
    if base and args.max_lora_rank:
        base = replace(base, max_lora_rank=args.max_lora_rank)
    findings = inspect(adapter, base)
    if args.json:
        print_json([asdict(finding) for finding in findings])
    else:
        _print_findings(findings)
    refuse_failures(adapter, findings)
    return 0


def _print_findings(findings: "list[Finding]") -> None:
    marks = {"ok": "ok     ", "failed": "FAILED ", "skipped": "skipped"}
    for finding in findings:
        print(f"  {marks[finding.outcome]} {finding.check:8} {finding.text}")


def _alias_note(root: str, adapters: list) -> str:  # type: ignore[type-arg]
    return next((a.name for a in adapters if a.root == root and "@" in a.name), "")


def _urls(args: argparse.Namespace) -> list[str]:
    return [url for word in args.url or [DEFAULT_URL] for url in word.split(",") if url]

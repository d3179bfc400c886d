"""`seatrial adapters`: LoRA adapters on live servers."""

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from seatrial.serving.adapters.gate import Base, Finding
    from seatrial.serving.client import ModelCard

DEFAULT_URL = "http://127.0.0.1:8000"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    server = argparse.ArgumentParser(add_help=False)
    server.add_argument(
        "--url",
        action="append",
        metavar="URL",
        help="a server, or several by commas or repetition: all of them or none (default: all replicas of the"
        f" seatrial serve that runs here, else {DEFAULT_URL})",
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
                    "adapters": [
                        {"name": a.name, "means": _meaning(a, adapters), "path": a.root} for a in adapters
                    ],
                }
                for url, base, adapters in found
            ]
        )
        return 0
    rows = [
        (a.name, _meaning(a, adapters), base.name, a.root, url)
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
    from seatrial.serving.adapters.live import load
    from seatrial.serving.adapters.source import adapter_directory

    adapter = Adapter.read(adapter_directory(args.adapter))
    done = await load(args.name, adapter, args.adapter, _urls(args))
    if args.json:
        print_json([{"url": it.url, "name": it.name, "version": it.version} for it in done])
        return 0
    for it in done:
        print(f"loaded {it.version} on {it.url}")
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
    import sys
    from dataclasses import asdict

    from seatrial.cli.printing import print_json
    from seatrial.serving.adapters.adapter import Adapter
    from seatrial.serving.adapters.gate import inspect, refuse_failures
    from seatrial.serving.adapters.source import adapter_directory

    adapter = Adapter.read(adapter_directory(args.adapter))
    bases = await _bases(args)
    if not bases:
        print("no server answers and no --base is given: only the files are checked", file=sys.stderr)
    checked = {place: inspect(adapter, base) for place, base in bases.items()} or {"": inspect(adapter, None)}
    if args.json:
        print_json([{"against": at, "findings": [asdict(f) for f in found]} for at, found in checked.items()])
    for place, findings in checked.items():
        if not args.json:
            print(f"{args.adapter}{f' against {place}' if place else ''}")
            _print_findings(findings)
    for findings in checked.values():
        refuse_failures(adapter, findings)
    return 0


async def _bases(args: argparse.Namespace) -> "dict[str, Base]":
    """What to check against, by where it was found: `--base`, else every server given, else one at the default."""
    from dataclasses import replace

    from seatrial.errors import ServerError
    from seatrial.serving.adapters.gate import Base
    from seatrial.serving.adapters.live import base_on
    from seatrial.serving.client import Client
    from seatrial.serving.models.catalog import resolve_model

    bases: dict[str, Base] = {}
    if args.base:
        bases[args.base] = Base(resolve_model(args.base, print, make=False))
    else:
        for url in _urls(args):
            try:
                async with Client(url, timeout_s=10) as client:
                    bases[client.url] = await base_on(client)
            except ServerError:
                if args.url:
                    raise
    limit = args.max_lora_rank
    return {place: replace(base, max_lora_rank=limit or base.max_lora_rank) for place, base in bases.items()}


def _print_findings(findings: "list[Finding]") -> None:
    marks = {"ok": "ok     ", "failed": "FAILED ", "skipped": "skipped"}
    for finding in findings:
        print(f"  {marks[finding.outcome]} {finding.check:8} {finding.text}")


def _meaning(card: "ModelCard", adapters: "list[ModelCard]") -> str:
    """For an alias, the version it stands for."""
    if "@" in card.name:
        return ""
    versions = (other.name for other in adapters if other.root == card.root)
    return next((name for name in versions if name.startswith(f"{card.name}@")), "")


def _urls(args: argparse.Namespace) -> list[str]:
    """The servers meant: those given, else the one `seatrial serve` that runs here with all its replicas."""
    from seatrial.errors import BadInput
    from seatrial.serving import registry

    if args.url is not None:
        urls = [url.strip() for word in args.url for url in word.split(",") if url.strip()]
        if not urls:
            raise BadInput("--url names no server", cure=f"write it like {DEFAULT_URL}")
        return urls
    notes = registry.live()
    if len({note.run for note in notes}) > 1:
        known = ", ".join(note.url for note in notes)
        raise BadInput("several seatrial serve run here", cure=f"say which with --url: {known}")
    return [note.url for note in notes] or [DEFAULT_URL]

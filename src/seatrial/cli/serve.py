"""`seatrial serve`: start vLLM from a config, in the foreground."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from seatrial.serving.plan import Plan


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--config", type=Path, required=True, metavar="FILE", help="the configuration (YAML or JSON)"
    )
    parser.add_argument("--host", help="listen here instead of where the config says (default 127.0.0.1)")
    parser.add_argument("--port", type=int, help="the first replica's port (default 8000)")
    parser.add_argument("--replicas", type=int, help="how many servers, on consecutive ports")
    parser.add_argument(
        "--run-dir", type=Path, metavar="DIR", help="where logs and run.json go (default runs/...)"
    )
    parser.add_argument("--quiet", action="store_true", help="keep the engines' log lines out of the console")
    parser.add_argument(
        "--dry-run", action="store_true", help="print the command lines and environment, start nothing"
    )
    parser.add_argument(
        "--json", action="store_true", help="with --dry-run or alone: print the resolved config"
    )


def run(args: argparse.Namespace) -> int:
    from seatrial.cli.printing import print_json, say
    from seatrial.config.serve import read_serve_config
    from seatrial.serving.plan import make_plan

    config = read_serve_config(args.config, host=args.host, port=args.port, replicas=args.replicas)
    dry = args.dry_run or args.json
    plan = make_plan(config, say, dry=dry)
    if args.json:
        print_json(plan.resolved())
    elif dry:
        for launch in plan.launches:
            print(launch.shown())
    if dry:
        return 0
    return _serve(args, plan)


def _serve(args: argparse.Namespace, plan: "Plan") -> int:
    import asyncio

    from seatrial.cli.printing import print_line, say
    from seatrial.runs import Run, new_run_path
    from seatrial.serving.supervisor import Supervisor

    def echo(index: int, line: str) -> None:
        if not args.quiet:
            print_line(f"[{index}] {line}")

    def ready() -> None:
        for url in plan.urls:
            say(f"ready: {url}/v1  (model: {plan.config.name})")
        say("Ctrl-C stops")

    path = args.run_dir or new_run_path("serve", plan.config.name.rstrip("/").split("/")[-1])
    versions = (
        plan.engine.versions() if plan.config.runtime == "process" else {"image": plan.config.docker.image}
    )
    inputs = {"config": args.config, **plan.inputs()}
    with Run.start(path, "serve", plan.resolved(), versions=versions, inputs=inputs) as run:
        say(f"run directory: {path}")
        supervisor = Supervisor(plan, run, say=say, echo=echo, on_ready=ready)
        asyncio.run(supervisor.serve())
        run.end("finished" if supervisor.was_ready else "interrupted")
    say(f"stopped; logs and events are in {path}")
    return 0

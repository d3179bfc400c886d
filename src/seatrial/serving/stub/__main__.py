"""In place of vLLM: `python -m seatrial.serving.stub serve MODEL --flags...`, the command line of `vllm serve`.

As strict as vLLM about what must be switched on: flags that vLLM would want are wanted here too.
"""

import argparse
import os
import sys
from collections.abc import Mapping, Sequence

from seatrial.errors import SeatrialError
from seatrial.serving.stub.flags import add_flags, settings_of
from seatrial.serving.stub.server import serve
from seatrial.serving.stub.settings import Settings


def main(argv: Sequence[str] | None = None) -> int:
    arguments = list(sys.argv[1:] if argv is None else argv)
    try:
        settings, ignored = read_arguments(arguments, os.environ)
        if ignored:
            print(f"stub: these flags mean nothing to it: {' '.join(ignored)}", file=sys.stderr, flush=True)
        return serve(settings)
    except SeatrialError as error:
        print(f"stub: {error.message}", file=sys.stderr)
        if error.cure:
            print(f"  cure: {error.cure}", file=sys.stderr)
        return error.exit_code


def read_arguments(arguments: Sequence[str], environment: Mapping[str, str]) -> tuple[Settings, list[str]]:
    """The settings, and the flags that were ignored."""
    parser = argparse.ArgumentParser(prog="python -m seatrial.serving.stub serve MODEL", allow_abbrev=False)
    add_flags(parser)
    parser.add_argument("--enable-prompt-tokens-details", action="store_true")
    parser.add_argument("--enable-auto-tool-choice", action="store_true")
    rest = [dashed(word) for word in arguments]
    if rest[:1] == ["serve"]:
        rest = rest[1:]
    if rest and not rest[0].startswith("-"):
        rest = ["--model", *rest]
    args, unknown = parser.parse_known_args(rest)
    settings = settings_of(
        args,
        environment,
        prompt_tokens_details=args.enable_prompt_tokens_details,
        auto_tool_choice=args.enable_auto_tool_choice,
        runtime_lora=switched_on(environment, "VLLM_ALLOW_RUNTIME_LORA_UPDATING"),
        developer=switched_on(environment, "VLLM_SERVER_DEV_MODE"),
    )
    return settings, [word.partition("=")[0] for word in unknown if word.startswith("--")]


def dashed(word: str) -> str:
    """vLLM takes --max_num_seqs for --max-num-seqs."""
    if not word.startswith("--"):
        return word
    flag, equals, value = word.partition("=")
    return flag.replace("_", "-") + equals + value


def switched_on(environment: Mapping[str, str], name: str) -> bool:
    return environment.get(name, "").strip().lower() in ("1", "true")


if __name__ == "__main__":
    sys.exit(main())

"""The command-line flags: the stand-in's own, and those of `vllm serve` that mean something to it."""

import argparse
import json
from collections.abc import Mapping

from seatrial.errors import BadInput
from seatrial.serving.stub.core.costs import Costs
from seatrial.serving.stub.settings import Settings

DEFAULT = Settings()


def add_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--host", default=DEFAULT.host)
    parser.add_argument(
        "--port", type=int, default=DEFAULT.port, help="0: any free one (default: %(default)s)"
    )
    parser.add_argument("--model", default=DEFAULT.model, help="a name or a path; nothing is read from it")
    parser.add_argument("--served-model-name", nargs="+", action="extend", default=[], metavar="NAME")
    parser.add_argument("--max-model-len", type=count, default=DEFAULT.max_model_len)
    parser.add_argument("--block-size", type=count, default=DEFAULT.block_size)
    parser.add_argument(
        "--num-gpu-blocks", "--num-gpu-blocks-override", type=count, default=DEFAULT.num_gpu_blocks
    )
    parser.add_argument("--max-num-seqs", type=count, default=DEFAULT.max_num_seqs)
    parser.add_argument("--max-num-batched-tokens", type=count, default=DEFAULT.max_num_batched_tokens)
    parser.add_argument("--max-loras", type=count, default=DEFAULT.max_loras)
    parser.add_argument("--max-lora-rank", type=count, default=DEFAULT.max_lora_rank)
    parser.add_argument("--lora-modules", nargs="+", default=[], metavar="NAME=PATH")
    parser.add_argument("--override-generation-config", type=json.loads, default={}, metavar="JSON")
    parser.add_argument("--scheduling-policy", choices=("fcfs", "priority"), default="fcfs")
    parser.add_argument("--no-enable-prefix-caching", dest="prefix_caching", action="store_false")
    parser.add_argument("--api-key", nargs="+", default=[], help="what /v1 asks for (default: VLLM_API_KEY)")
    parser.add_argument("--script", metavar="FILE", help="scripted answers, YAML or JSON")
    parser.add_argument("--seconds-per-step", type=float, default=0.0, metavar="S")
    parser.add_argument("--seconds-per-prefill-token", type=float, default=0.0, metavar="S")
    parser.add_argument("--seconds-per-sequence", type=float, default=0.0, metavar="S")
    parser.add_argument("--seconds-per-context-token", type=float, default=0.0, metavar="S")
    parser.add_argument(
        "--startup-seconds", type=float, default=0.0, metavar="S", help="listen only after these"
    )
    parser.add_argument("--fail-start", metavar="TEXT", help="print TEXT to stderr and exit 1 instead")


def settings_of(
    args: argparse.Namespace,
    environment: Mapping[str, str],
    *,
    prompt_tokens_details: bool = True,
    auto_tool_choice: bool = True,
    runtime_lora: bool = True,
    developer: bool = True,
) -> Settings:
    keys = args.api_key or [environment.get("VLLM_API_KEY", "")]
    return Settings(
        host=args.host,
        port=args.port,
        model=args.model,
        served_names=tuple(args.served_model_name),
        max_model_len=args.max_model_len,
        block_size=args.block_size,
        num_gpu_blocks=args.num_gpu_blocks,
        max_num_seqs=args.max_num_seqs,
        max_num_batched_tokens=args.max_num_batched_tokens,
        max_loras=args.max_loras,
        max_lora_rank=args.max_lora_rank,
        lora_modules=tuple(lora_module(text) for text in args.lora_modules),
        max_new_tokens=args.override_generation_config.get("max_new_tokens"),
        by_priority=args.scheduling_policy == "priority",
        costs=Costs(
            step=args.seconds_per_step,
            prefill_token=args.seconds_per_prefill_token,
            sequence=args.seconds_per_sequence,
            context_token=args.seconds_per_context_token,
        ),
        script=args.script,
        startup_seconds=args.startup_seconds,
        fail_start=args.fail_start,
        api_keys=tuple(key for key in keys if key),
        prefix_caching=args.prefix_caching,
        prompt_tokens_details=prompt_tokens_details,
        auto_tool_choice=auto_tool_choice,
        runtime_lora=runtime_lora,
        developer=developer,
    )


def count(text: str) -> int:
    """A whole number above 0; like vLLM, 4k is 4000 and 4K is 4096."""
    units = {"k": 10**3, "m": 10**6, "K": 2**10, "M": 2**20}
    unit = units.get(text[-1:], 1)
    value = int(float(text[:-1]) * unit) if unit > 1 else int(text)
    if value < 1:
        raise ValueError
    return value


def lora_module(text: str) -> tuple[str, str]:
    """NAME=PATH, or a JSON object with these two."""
    if text.startswith("{"):
        try:
            module = json.loads(text)
            return str(module["name"]), str(module["path"])
        except (ValueError, KeyError) as error:
            raise BadInput(f"--lora-modules: {text} lacks name and path: {error}") from None
    name, equals, path = text.partition("=")
    if not (name and equals and path):
        raise BadInput(
            f"--lora-modules: {text!r} is not NAME=PATH", cure="write, say, my-adapter=runs/adapter"
        )
    return name, path

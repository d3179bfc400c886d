"""Which parsers a family of models needs for its tool calls and its reasoning. First match wins."""

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Family:
    name: str
    sign: re.Pattern[str]
    tool_call_parser: str | None = None
    reasoning_parser: str | None = None


def _family(name: str, sign: str, tools: str | None = None, reasoning: str | None = None) -> Family:
    return Family(name, re.compile(sign, re.IGNORECASE), tools, reasoning)


# A distilled or fine-tuned model speaks as it was taught to, so the teacher's name stands before the base's.
FAMILIES: tuple[Family, ...] = (
    _family("gpt-oss", r"gpt[-_]?oss", "openai", "openai_gptoss"),
    _family("deepseek-r1", r"deepseek-r1", "deepseek_v3", "deepseek_r1"),
    _family("deepseek-v3.1", r"deepseek-v3\.1", "deepseek_v31", "deepseek_v3"),
    _family("deepseek-v3", r"deepseek[-_]v3", "deepseek_v3", "deepseek_v3"),
    _family("hermes", r"hermes", "hermes"),
    _family("nemotron-orchestrator", r"orchestrator-8b", "hermes", "qwen3"),
    _family("nemotron-3", r"nemotron-3", "qwen3_coder", "nemotron_v3"),
    _family("qwen3-coder", r"qwen3-?coder", "qwen3_coder"),
    _family("qwen3.5", r"qwen3[._][5-9]", "qwen3_coder", "qwen3"),
    _family("qwen3-instruct", r"qwen3.*instruct", "hermes"),
    _family("qwen3", r"qwen-?3|qwq", "hermes", "qwen3"),
    _family("qwen", r"qwen", "hermes"),
    _family("magistral", r"magistral", "mistral", "mistral"),
    _family("mistral", r"mi[sx]tral|devstral|codestral|ministral", "mistral"),
    _family("llama-4", r"llama-?4", "llama4_pythonic"),
    _family("llama-3", r"llama-?3", "llama3_json"),
    _family("glm-4.5", r"glm-?4\.[5-6]", "glm45", "glm45"),
    _family("glm-4.7", r"glm-?(4\.7|5)", "glm47", "glm47"),
    _family("kimi-k2", r"kimi-k2", "kimi_k2", "kimi_k2"),
    _family("minimax-m2", r"minimax-m2", "minimax_m2", "minimax_m2"),
    _family("granite-4", r"granite-4", "granite4"),
    _family("phi-4-mini", r"phi-?4-mini", "phi4_mini_json"),
    _family("olmo-3", r"olmo-?3", "olmo3", "olmo3"),
    _family("seed-oss", r"seed[-_]oss", "seed_oss", "seed_oss"),
    _family("smollm2", r"smollm-?2", "hermes"),
    _family("tiny", r"^tiny$", "hermes"),
)
UNKNOWN = Family("unknown", re.compile(""))


def family_of(*names: str) -> Family:
    """The family of a model by the first of its names that tells; one of no known family gets no parsers."""
    for name in names:
        last = name.rstrip("/").split("/")[-1]
        for family in FAMILIES:
            if family.sign.search(last):
                return family
    return UNKNOWN

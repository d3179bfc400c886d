"""Our models' tokenizers and templates, as the libraries of the engine's environment see them."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from seatrial.serving.environments.environment import Environment
from seatrial.serving.models.catalog import make_own

CONVERSATION = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "List the files, naïvely."},
    {"role": "assistant", "content": "ls -la"},
    {"role": "user", "content": "Thanks."},
    {"role": "assistant", "content": "You are welcome."},
]
PROGRAM = """
import json, sys
from transformers import AutoTokenizer
tokenizer = AutoTokenizer.from_pretrained(sys.argv[1])
messages = json.loads(sys.argv[2])
whole = tokenizer.apply_chat_template(messages, return_dict=True, return_assistant_tokens_mask=True)
ids, mask = whole["input_ids"], whole["assistant_masks"]
prompts = [
    tokenizer.apply_chat_template(messages[:end], add_generation_prompt=True, return_dict=True)["input_ids"]
    for end in (2, 4)
]
print(json.dumps({
    "masked": tokenizer.decode([token for token, written in zip(ids, mask) if written]),
    "prefixes": [ids[:len(prompt)] == prompt for prompt in prompts],
    "round_trip": tokenizer.decode(tokenizer("naïve\\n\\ttext 你好")["input_ids"]),
}))
"""


@pytest.mark.vllm
@pytest.mark.parametrize("name", ["tiny", "smollm2"])
def test_the_mask_covers_all_and_only_what_the_assistant_wrote(name: str) -> None:
    directory = make_own(name, print)
    python = Environment.named("engine").require().python
    seen = json.loads(last_line([str(python), "-c", PROGRAM, str(directory), json.dumps(CONVERSATION)]))
    assert seen["masked"] == "ls -la<|im_end|>You are welcome.<|im_end|>"
    assert seen["prefixes"] == [True, True]
    assert seen["round_trip"] == "naïve\n\ttext 你好"


def last_line(command: list[str]) -> str:
    variables = os.environ | {"HF_HUB_OFFLINE": "1"}
    done = subprocess.run(command, env=variables, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()[-1]


@pytest.mark.vllm
def test_smollm2_comes_whole_and_says_where_it_is() -> None:
    directory: Path = make_own("smollm2", print)
    config = json.loads((directory / "config.json").read_text())
    assert config["architectures"] == ["LlamaForCausalLM"]
    assert "quantization_config" not in config
    assert (directory / "model.safetensors").stat().st_size > 200 * 2**20

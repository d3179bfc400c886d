"""A GGUF file of SmolLM2 to a directory that transformers and vLLM load. Runs in the engine's interpreter.

python -m seatrial.serving.models.convert FILE.gguf DIRECTORY
"""

import sys
from pathlib import Path

from seatrial.serving.models.templates import SMOLLM2

CONVERSATION = [
    {"role": "user", "content": "List the files."},
    {"role": "assistant", "content": "ls -la"},
    {"role": "user", "content": "Thanks."},
]


def main() -> int:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    source, target = Path(sys.argv[1]), Path(sys.argv[2])
    tokenizer = AutoTokenizer.from_pretrained(source.parent, gguf_file=source.name)
    original = tokenizer.apply_chat_template(CONVERSATION, tokenize=False, add_generation_prompt=True)
    tokenizer.chat_template = SMOLLM2
    completed = tokenizer.apply_chat_template(CONVERSATION, tokenize=False, add_generation_prompt=True)
    if original != completed:
        print(f"the chat template changed the text:\n{original!r}\n{completed!r}", file=sys.stderr)
        return 1
    model = AutoModelForCausalLM.from_pretrained(source.parent, gguf_file=source.name, dtype=torch.float32)
    # The weights are dequantized by now; left in place, these would have them saved as GGUF again.
    model.hf_quantizer = None
    if hasattr(model.config, "quantization_config"):
        del model.config.quantization_config
    tokenizer.model_max_length = model.config.max_position_embeddings
    model.to(torch.bfloat16).save_pretrained(target)
    tokenizer.save_pretrained(target)
    return 0


if __name__ == "__main__":
    sys.exit(main())

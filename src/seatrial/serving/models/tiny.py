"""`tiny`: a random Qwen3 of about one million parameters, with a byte-level tokenizer and a chat template.

It says nothing sensible, and serves, trains and takes adapters like its large relatives, in seconds.
"""

from pathlib import Path

import numpy as np
from safetensors.numpy import save_file

from seatrial.files import write_json, write_whole
from seatrial.serving.models.catalog import Say
from seatrial.serving.models.templates import CHATML_WITH_TOOLS

HIDDEN, LAYERS, HEADS, KV_HEADS, HEAD_SIZE, INNER = 128, 4, 4, 2, 32, 448
SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
VOCABULARY = 256 + len(SPECIAL)
CONTEXT = 4096


def make(directory: Path, say: Say) -> None:
    say("tiny: making a random Qwen3")
    save_file(weights(seed=0), directory / "model.safetensors", metadata={"format": "pt"})
    write_json(directory / "tokenizer.json", tokenizer())
    write_json(directory / "tokenizer_config.json", tokenizer_config())
    write_whole(directory / "chat_template.jinja", CHATML_WITH_TOOLS)
    write_json(directory / "generation_config.json", {"bos_token_id": 256, "eos_token_id": [258, 256]})
    write_json(directory / "config.json", config())


def weights(seed: int) -> dict[str, np.ndarray]:
    random = np.random.default_rng(seed)

    def matrix(rows: int, columns: int) -> np.ndarray:
        # Larger than a trained model's initial scale: next-token odds should differ visibly from uniform.
        return (random.standard_normal((rows, columns)) * 0.08).astype(np.float32)

    tensors = {
        "model.embed_tokens.weight": matrix(VOCABULARY, HIDDEN),
        "model.norm.weight": np.ones(HIDDEN, np.float32),
        "lm_head.weight": matrix(VOCABULARY, HIDDEN),
    }
    for layer in range(LAYERS):
        at = f"model.layers.{layer}"
        tensors |= {
            f"{at}.self_attn.q_proj.weight": matrix(HEADS * HEAD_SIZE, HIDDEN),
            f"{at}.self_attn.k_proj.weight": matrix(KV_HEADS * HEAD_SIZE, HIDDEN),
            f"{at}.self_attn.v_proj.weight": matrix(KV_HEADS * HEAD_SIZE, HIDDEN),
            f"{at}.self_attn.o_proj.weight": matrix(HIDDEN, HEADS * HEAD_SIZE),
            f"{at}.self_attn.q_norm.weight": np.ones(HEAD_SIZE, np.float32),
            f"{at}.self_attn.k_norm.weight": np.ones(HEAD_SIZE, np.float32),
            f"{at}.mlp.gate_proj.weight": matrix(INNER, HIDDEN),
            f"{at}.mlp.up_proj.weight": matrix(INNER, HIDDEN),
            f"{at}.mlp.down_proj.weight": matrix(HIDDEN, INNER),
            f"{at}.input_layernorm.weight": np.ones(HIDDEN, np.float32),
            f"{at}.post_attention_layernorm.weight": np.ones(HIDDEN, np.float32),
        }
    return tensors


def config() -> dict[str, object]:
    return {
        "architectures": ["Qwen3ForCausalLM"],
        "model_type": "qwen3",
        "vocab_size": VOCABULARY,
        "hidden_size": HIDDEN,
        "intermediate_size": INNER,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": HEADS,
        "num_key_value_heads": KV_HEADS,
        "head_dim": HEAD_SIZE,
        "hidden_act": "silu",
        "max_position_embeddings": CONTEXT,
        "rms_norm_eps": 1e-6,
        "rope_theta": 10000.0,
        "attention_bias": False,
        "tie_word_embeddings": False,
        "torch_dtype": "float32",
        "bos_token_id": 256,
        "eos_token_id": 258,
        "use_cache": True,
    }


def tokenizer() -> dict[str, object]:
    """One token a byte, in the `tokenizers` library's own format, with no merges."""
    vocabulary = {character: byte for byte, character in enumerate(byte_characters())}
    vocabulary |= {token: 256 + index for index, token in enumerate(SPECIAL)}
    added = [
        {
            "id": 256 + index,
            "content": token,
            "single_word": False,
            "lstrip": False,
            "rstrip": False,
            "normalized": False,
            "special": True,
        }
        for index, token in enumerate(SPECIAL)
    ]
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": True}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": added,
        "normalizer": None,
        "pre_tokenizer": byte_level,
        "post_processor": None,
        "decoder": byte_level,
        "model": {"type": "BPE", "dropout": None, "unk_token": None, "vocab": vocabulary, "merges": []},
    }


def tokenizer_config() -> dict[str, object]:
    return {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": CONTEXT,
        "bos_token": None,
        "eos_token": "<|im_end|>",
        "pad_token": "<|endoftext|>",
        "clean_up_tokenization_spaces": False,
    }


def byte_characters() -> list[str]:
    """A printable character for each byte, as byte-level tokenizers write them: itself where it prints."""
    printable = {
        *range(ord("!"), ord("~") + 1),
        *range(ord("¡"), ord("¬") + 1),
        *range(ord("®"), ord("ÿ") + 1),
    }
    characters: list[str] = []
    stand_in = 256
    for byte in range(256):
        if byte in printable:
            characters.append(chr(byte))
        else:
            characters.append(chr(stand_in))
            stand_in += 1
    return characters

import json
from typing import Any

import pytest

from seatrial.config.serve import ServeConfig
from seatrial.serving.families import family_of
from seatrial.serving.launch import Launch, as_flag, engine_arguments, engine_environment, lora_rank, parsers

ADAPTERS = {"one": "/adapters/one", "two": "org/two"}


def arguments(*, cpu: bool = False, adapter_rank: int | None = None, **settings: Any) -> list[str]:
    config = ServeConfig.model_validate({"model_id": "org/model", **settings})
    return engine_arguments(
        config,
        family=family_of(config.model_id),
        model="org/model",
        port=config.port,
        adapters={name: ADAPTERS[name] for name in config.lora_modules},
        adapter_rank=adapter_rank,
        cpu=cpu,
    )


def value_of(words: list[str], flag: str) -> str:
    assert words.count(flag) == 1
    return words[words.index(flag) + 1]


def test_all_adapters_follow_one_flag() -> None:
    words = arguments(lora_modules=ADAPTERS)
    at = words.index("--lora-modules")
    assert words.count("--lora-modules") == 1
    assert words[at + 1 : at + 3] == ["one=/adapters/one", "two=org/two"]
    assert "--enable-lora" in words


def test_settings_become_flags() -> None:
    words = arguments(
        max_model_len=8192,
        quantization="fp8",
        dtype="bfloat16",
        gpu_memory_utilization=0.85,
        tensor_parallel_size=2,
        max_num_seqs=64,
        kv_offload_gib=20,
        scheduling_policy="priority",
        enable_prefix_caching=False,
    )
    assert value_of(words, "--max-model-len") == "8192"
    assert value_of(words, "--quantization") == "fp8"
    assert value_of(words, "--dtype") == "bfloat16"
    assert value_of(words, "--gpu-memory-utilization") == "0.85"
    assert value_of(words, "--tensor-parallel-size") == "2"
    assert value_of(words, "--max-num-seqs") == "64"
    assert value_of(words, "--kv-offloading-size") == "20.0"
    assert value_of(words, "--kv-offloading-backend") == "native"
    assert value_of(words, "--scheduling-policy") == "priority"
    assert "--no-enable-prefix-caching" in words


def test_inference_parameters_become_the_default_generation_config() -> None:
    words = arguments(inference_parameters={"temperature": 0.6, "max_tokens": 2048})
    wanted = {"temperature": 0.6, "max_new_tokens": 2048}
    assert json.loads(value_of(words, "--override-generation-config")) == wanted


def test_any_argument_of_vllm_can_be_passed() -> None:
    words = arguments(
        extra_args={
            "swap-space": 4,
            "async_scheduling": False,
            "enable_sleep_mode": True,
            "allowed-origins": ["a", "b"],
            "compilation-config": {"level": 3},
            "seed": None,
        }
    )
    assert value_of(words, "--swap-space") == "4"
    assert "--no-async-scheduling" in words
    assert "--enable-sleep-mode" in words
    assert words[words.index("--allowed-origins") + 1 :][:2] == ["a", "b"]
    assert value_of(words, "--compilation-config") == '{"level": 3}'
    assert "--seed" not in words


def test_only_a_cpu_gets_eager_mode_unasked() -> None:
    assert "--enforce-eager" in arguments(cpu=True)
    assert "--enforce-eager" not in arguments(cpu=False)
    assert "--enforce-eager" not in arguments(cpu=True, enforce_eager=False)


@pytest.mark.parametrize(
    ("found", "configured", "served"), [(None, None, 16), (20, None, 32), (8, None, 8), (8, 64, 64)]
)
def test_the_rank_limit_is_the_largest_adapter_rounded_up(
    found: int | None, configured: int | None, served: int
) -> None:
    config = ServeConfig(model_id="m", enable_lora=True, max_lora_rank=configured)
    assert lora_rank(config, found) == served


@pytest.mark.parametrize(
    ("model", "tools", "reasoning"),
    [
        ("openai/gpt-oss-20b", "openai", "openai_gptoss"),
        ("Qwen/Qwen2.5-Coder-14B-Instruct", "hermes", None),
        ("Qwen/Qwen3-32B-FP8", "hermes", "qwen3"),
        ("/ckpt/nvidia/Nemotron-Orchestrator-8B/", "hermes", "qwen3"),
        ("mistralai/Devstral-Small-2-24B-Instruct-2512", "mistral", None),
        ("nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16", "qwen3_coder", "nemotron_v3"),
        ("meta-llama/Llama-3.1-8B-Instruct", "llama3_json", None),
        ("deepseek-ai/DeepSeek-R1-Distill-Qwen-7B", "deepseek_v3", "deepseek_r1"),
        ("NousResearch/Hermes-3-Llama-3.1-8B", "hermes", None),
        ("org/something-new", None, None),
    ],
)
def test_parsers_follow_the_family(model: str, tools: str | None, reasoning: str | None) -> None:
    assert parsers(ServeConfig(model_id=model), family_of(model)) == (tools, reasoning)


def test_parsers_can_be_overridden_and_switched_off() -> None:
    config = ServeConfig(model_id="Qwen/Qwen3-8B", tool_call_parser="qwen3_xml", reasoning_parser="none")
    assert parsers(config, family_of(config.model_id)) == ("qwen3_xml", None)
    words = arguments(tool_call_parser="none")
    assert "--enable-auto-tool-choice" not in words


def test_a_gpu_replica_sees_its_own_gpus_and_a_cpu_one_its_cache() -> None:
    config = ServeConfig(model_id="m", enable_lora=True, environment={"NCCL_DEBUG": "INFO"})
    on_gpu = engine_environment(config, gpus=["2", "3"], cpu=False, cpu_kv_gib=4, python_path="/p")
    assert on_gpu["CUDA_VISIBLE_DEVICES"] == "2,3"
    assert on_gpu["VLLM_ALLOW_RUNTIME_LORA_UPDATING"] == "True"
    assert on_gpu["NCCL_DEBUG"] == "INFO"
    on_cpu = engine_environment(config, gpus=[], cpu=True, cpu_kv_gib=4, python_path="/p")
    assert on_cpu["VLLM_CPU_KVCACHE_SPACE"] == "4"
    assert "CUDA_VISIBLE_DEVICES" not in on_cpu


def test_a_path_of_the_users_own_does_not_hide_our_plugin() -> None:
    config = ServeConfig(model_id="m", environment={"PYTHONPATH": "/mine"})
    assert (
        engine_environment(config, gpus=[], cpu=True, cpu_kv_gib=1, python_path="/p")["PYTHONPATH"]
        == "/p:/mine"
    )


def test_a_shown_command_hides_secrets() -> None:
    launch = Launch(["vllm", "serve", "a b"], {"HF_TOKEN": "hf_secret", "X": "1"})
    assert launch.shown() == "HF_TOKEN='***' X=1 vllm serve 'a b'"


def test_a_flag_may_be_written_with_or_without_dashes() -> None:
    assert as_flag("--max-logprobs", 5) == as_flag("max_logprobs", 5) == ["--max-logprobs", "5"]

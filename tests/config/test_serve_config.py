from pathlib import Path

import pytest

from seatrial.config.serve import ServeConfig, read_serve_config
from seatrial.errors import ConfigError

NESTED = """
model_information:
  model_config:
    model_id: "mistralai/Devstral-Small-2-24B-Instruct-2512"
    max_model_len: 8192
  vllm_engine_config:
    gpu_memory_utilization: 0.85
    enable_lora: true
    lora_modules:
      devstral-sft: "someone/Devstral-SFT-LoRA"
      devstral-two: "someone/Devstral-Two-LoRA"
    max_loras: 2
    max_lora_rank: 16
  inference_parameters:
    temperature: 0.6
    max_tokens: 2048
"""


def read(tmp_path: Path, text: str, name: str = "config.yaml") -> ServeConfig:
    (tmp_path / name).write_text(text)
    return read_serve_config(tmp_path / name)


def test_the_nested_shape_reads_as_the_flat_one(tmp_path: Path) -> None:
    nested = read(tmp_path, NESTED)
    flat = ServeConfig.model_validate(
        {
            "model_id": "mistralai/Devstral-Small-2-24B-Instruct-2512",
            "max_model_len": 8192,
            "gpu_memory_utilization": 0.85,
            "enable_lora": True,
            "lora_modules": {
                "devstral-sft": "someone/Devstral-SFT-LoRA",
                "devstral-two": "someone/Devstral-Two-LoRA",
            },
            "max_loras": 2,
            "max_lora_rank": 16,
            "inference_parameters": {"temperature": 0.6, "max_tokens": 2048},
        }
    )
    assert nested == flat


def test_sampling_defaults_beside_the_model_are_found(tmp_path: Path) -> None:
    config = read(tmp_path, "model_information: {model_config: {model_id: m, temperature: 0.2}}")
    assert config.inference_parameters.temperature == 0.2


def test_our_own_keys_stand_beside_the_nested_shape(tmp_path: Path) -> None:
    config = read(tmp_path, NESTED + "port: 9000\nreplicas: 2\n")
    assert config.ports == [9000, 9001]


def test_the_nested_shape_may_lack_its_outermost_key(tmp_path: Path) -> None:
    config = read(tmp_path, "model_config: {model_id: m}\nvllm_engine_config: {max_model_len: 5}\nport: 9000")
    assert (config.model_id, config.max_model_len, config.port) == ("m", 5, 9000)


def test_numbers_in_the_environment_are_text(tmp_path: Path) -> None:
    assert read(tmp_path, "model_id: m\nenvironment: {OMP_NUM_THREADS: 4}").environment == {
        "OMP_NUM_THREADS": "4"
    }


def test_everything_that_is_wrong_is_named_at_once(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as error:
        read(tmp_path, "model_id: m\nport: -1\nreplicas: 0\nreplica: 2")
    assert all(word in error.value.message for word in ("port", "replicas", "did you mean 'replicas'?"))


def test_flags_win_over_the_file(tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text("model_id: m\nport: 9000")
    assert read_serve_config(tmp_path / "c.yaml", port=9100, host=None).port == 9100


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("model_id: m\nmax_model_length: 5", "unknown key 'max_model_length': did you mean 'max_model_len'?"),
        ("model_id: m\ndocker: {imag: x}", "unknown key 'docker.imag': did you mean 'image'?"),
        ("model_information: {model_confg: {}}", "did you mean 'model_config'?"),
        ("model_information: {vllm_engine_config: {max_lora: 1}, model_config: {model_id: m}}", "max_lora"),
        ("model_id: m\ngpu_memory_utilization: -0.5", "gpu_memory_utilization"),
        ("model_id: m\nport: 70000", "port"),
        ("port: 8000", "the key 'model_id' is missing"),
        ("model_id: m\nlora_modules: {a: b}\nenable_lora: false", "enable_lora is false"),
        ("model_id: m\nport: 65535\nreplicas: 2", "above 65535"),
        ("model_id: m\nextra_args: {max-model-len: 5}", "is a key of its own"),
        ("model_id: m\nextra_args: {api-key: secret}", "VLLM_API_KEY"),
        ("model_id: m\nextra_args: {hf-token: secret}", "HF_TOKEN"),
        ("model_id: 2026-99-99", "broken YAML"),
        ('model_id: ""', "model_id"),
        ("model_id: m\nlora_modules: {m: x}", "cannot name an adapter"),
        ("model_id: m\nlora_modules: {a@b: x}", "cannot name an adapter"),
        ("model_id: m\nextra_args: {ssl-keyfile: k.pem}", "over plain HTTP"),
        ("model_id: m\nlora_modules: {a: x, a: y}", "'a' is given twice"),
        ("model_information: {1: {}}", "the key 1 is not text"),
        ("model_information: {model_config: {model_id: m}}\ninference_parameters: 5", "must be a mapping"),
        ("model_id: [", "broken YAML"),
        ("- a\n- b", "holds a list"),
        ("", "holds nothing"),
        (
            "model_information: {model_config: {model_id: a}, vllm_engine_config: {model_id: b}}",
            "given twice",
        ),
    ],
)
def test_what_is_wrong_is_said_in_one_message(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ConfigError) as error:
        read(tmp_path, text)
    assert message in error.value.message
    assert "config.yaml" in error.value.message


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no such file"):
        read_serve_config(tmp_path / "nothing.yaml")


def test_broken_json_is_named_with_its_line(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"c\.json:2: broken JSON"):
        read(tmp_path, '{\n"model_id" m}', "c.json")


def test_every_field_is_described() -> None:
    plain = {"max_model_len", "quantization", "dtype", "gpu_memory_utilization", "tensor_parallel_size"}
    plain |= {"max_num_seqs", "enable_prefix_caching", "scheduling_policy", "host", "replicas", "runtime"}
    plain |= {"engine", "docker", "restart", "inference_parameters"}
    undescribed = {name for name, field in ServeConfig.model_fields.items() if not field.description}
    assert undescribed <= plain

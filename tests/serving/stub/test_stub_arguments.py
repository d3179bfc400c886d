import argparse
from collections.abc import Mapping

import pytest

from seatrial.errors import BadInput, ConfigError
from seatrial.serving.stub.__main__ import read_arguments
from seatrial.serving.stub.flags import add_flags, count, settings_of
from seatrial.serving.stub.settings import Settings


def stub_settings(*flags: str, environment: Mapping[str, str] | None = None) -> Settings:
    parser = argparse.ArgumentParser()
    add_flags(parser)
    return settings_of(parser.parse_args(flags), environment or {})


def test_the_command_line_of_vllm_is_understood() -> None:
    settings, ignored = read_arguments(
        [
            *("serve", "models/tiny", "--host", "0.0.0.0", "--port", "8001"),
            *("--lora-modules", "a=/x", 'b={"name": "c"}', '{"name": "d", "path": "/y"}', "--enable-lora"),
            *("--enable-auto-tool-choice", "--tool-call-parser", "hermes", "--dtype=float32"),
            *("--override-generation-config", '{"temperature":0.5,"max_new_tokens":64}'),
            *("--enable-prompt-tokens-details", "--enforce-eager", "--max_num_seqs", "8"),
            *("--served-model-name", "one", "two", "--some-offset", "-1"),
        ],
        {"VLLM_ALLOW_RUNTIME_LORA_UPDATING": "True"},
    )
    assert (settings.model, settings.names) == ("models/tiny", ("one", "two"))
    assert (settings.host, settings.port, settings.max_num_seqs) == ("0.0.0.0", 8001, 8)
    assert settings.lora_modules == (("a", "/x"), ("b", '{"name": "c"}'), ("d", "/y"))
    assert settings.max_new_tokens == 64
    assert settings.auto_tool_choice
    assert settings.prompt_tokens_details
    assert settings.runtime_lora
    assert ignored == ["--enable-lora", "--tool-call-parser", "--dtype", "--enforce-eager", "--some-offset"]


def test_in_place_of_vllm_nothing_is_on_that_was_not_switched_on() -> None:
    settings, ignored = read_arguments(["serve", "tiny"], {})
    assert not ignored
    assert not settings.auto_tool_choice
    assert not settings.prompt_tokens_details
    assert not settings.runtime_lora
    assert not settings.developer


def test_the_model_may_be_a_flag() -> None:
    assert read_arguments(["--model", "tiny", "--unknown", "value"], {})[0].names == ("tiny",)


def test_by_itself_everything_is_on() -> None:
    settings = stub_settings()
    assert settings.auto_tool_choice
    assert settings.prompt_tokens_details
    assert settings.runtime_lora
    assert settings.developer
    assert settings.costs.none


def test_names_may_be_given_together_or_one_by_one() -> None:
    flags = ("--served-model-name", "a", "b", "--served-model-name", "c")
    assert stub_settings(*flags).names == ("a", "b", "c")


def test_the_key_comes_from_the_environment_unless_given() -> None:
    assert stub_settings().api_keys == ()
    assert stub_settings(environment={"VLLM_API_KEY": "secret"}).api_keys == ("secret",)
    assert stub_settings("--api-key", "other", environment={"VLLM_API_KEY": "secret"}).api_keys == ("other",)


def test_counts_may_have_a_unit() -> None:
    assert [count(text) for text in ("16", "4k", "4K", "1.5k")] == [16, 4000, 4096, 1500]


def test_what_cannot_be_meant_is_refused_with_a_cure() -> None:
    with pytest.raises(BadInput, match="is not NAME=PATH"):
        stub_settings("--lora-modules", "adapter")
    with pytest.raises(ConfigError) as error:
        stub_settings("--max-model-len", "4096", "--num-gpu-blocks", "10")
    assert error.value.cure == "give at least --num-gpu-blocks 257, or a smaller --max-model-len"

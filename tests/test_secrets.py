import pytest

from seatrial.secrets import is_secret, masked, masked_words, without_secrets


@pytest.mark.parametrize(
    "name", ["OPENAI_API_KEY", "HF_TOKEN", "hf-token", "--api-key", "AWS_SECRET_ACCESS_KEY"]
)
def test_names_of_secrets_are_known(name: str) -> None:
    assert is_secret(name)


@pytest.mark.parametrize("name", ["PATH", "TOKENIZERS_PARALLELISM", "max_tokens", "KEYBOARD", "tokenizer"])
def test_other_names_are_not(name: str) -> None:
    assert not is_secret(name)


def test_a_child_gets_only_the_secrets_it_needs() -> None:
    environ = {"PATH": "/bin", "HF_TOKEN": "a", "OPENAI_API_KEY": "b"}
    assert without_secrets(environ, keep=("HF_TOKEN",)) == {"PATH": "/bin", "HF_TOKEN": "a"}


def test_an_address_with_a_password_is_a_secret_unless_the_child_needs_it() -> None:
    address = "https://user:pass@host/x"
    environ = {
        "DATABASE_URL": address,
        "HTTPS_PROXY": address,
        "PIP_INDEX_URL": address,
        "HOME_URL": "https://host",
    }
    assert set(without_secrets(environ)) == {"HTTPS_PROXY", "PIP_INDEX_URL", "HOME_URL"}


def test_values_are_hidden_wherever_they_stand() -> None:
    config = {
        "environment": {"WANDB_API_KEY": "s3cret", "A": "1", "HTTPS_PROXY": "http://user:s3cret@proxy:8080"},
        "docker": {"extra_args": ["-e", "X_TOKEN=s3cret", "--shm-size=8g"]},
        "api_key": None,
    }
    shown = masked(config)
    assert "s3cret" not in str(shown)
    assert shown["environment"]["A"] == "1"
    assert shown["docker"]["extra_args"] == ["-e", "X_TOKEN=***", "--shm-size=8g"]
    assert shown["api_key"] is None


def test_command_lines_hide_their_keys() -> None:
    words = ["--api-key", "abc", "--hub-token=def", "--port", "8000", "--env", "X_TOKEN=g"]
    assert masked_words(words) == [
        "--api-key",
        "***",
        "--hub-token=***",
        "--port",
        "8000",
        "--env",
        "X_TOKEN=***",
    ]

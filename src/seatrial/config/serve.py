"""What `seatrial serve` is told: a model, how many replicas of it, and how the engine should run it.

Two shapes of the file are read: our flat one, whose keys are the fields below, and the nested one with
`model_information.model_config`, `.vllm_engine_config` and `.inference_parameters`, which is flattened first.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, field_validator, model_validator

from seatrial.config.reading import Config, nearest, read_mapping, validated
from seatrial.errors import ConfigError
from seatrial.secrets import is_secret

Scalar = str | int | float | bool
UNREACHABLE = ("ssl_keyfile", "ssl_certfile", "ssl_ca_certs", "uds", "root_path", "headless", "grpc")
"""Arguments of vLLM that take a server off the address where it is asked for its health; a proxy does such things."""


class InferenceParameters(Config):
    """Defaults for requests that do not say otherwise."""

    temperature: float | None = Field(None, ge=0)
    top_p: float | None = Field(None, gt=0, le=1)
    top_k: int | None = Field(None, ge=-1)
    min_p: float | None = Field(None, ge=0, le=1)
    repetition_penalty: float | None = Field(None, gt=0)
    max_tokens: int | None = Field(None, gt=0)
    """The most tokens of one reply, when a request does not say; vLLM also holds larger requests to it."""


class EngineChoice(Config):
    """What serves the model, which interpreter runs it, and on what device."""

    name: Literal["vllm", "stub"] = "vllm"
    """`stub` is the stand-in that speaks vLLM's HTTP and answers by script, to try a configuration out."""
    python: Path | None = None
    """One that can import vLLM. Default: this one if it can, else what `seatrial setup engine` made."""
    device: Literal["auto", "cuda", "cpu"] = "auto"
    """`auto` takes the NVIDIA GPUs when there are any."""


class DockerChoice(Config):
    """How `runtime: docker` starts its containers."""

    image: str = "vllm/vllm-openai:v0.32.0"
    network: str = "host"
    """With `host` the container listens where a process would; any other network publishes the port."""
    mounts: dict[str, str] = {}
    """More directories of the host to mount, read-only, to where the container sees them."""
    entrypoint: list[str] = Field(["vllm", "serve"], min_length=1)
    """The command of the image to which the model and the engine's arguments are given."""
    extra_args: list[str] = []
    """More arguments of `docker run`."""


class RestartPolicy(Config):
    """What happens when a replica dies."""

    limit: int = Field(5, ge=0)
    """Restarts of one replica within `window_s` after which the supervisor gives up."""
    window_s: float = Field(600, gt=0)
    first_delay_s: float = Field(1, gt=0)
    """Doubled with each restart, up to `max_delay_s`."""
    unresponsive_s: float = Field(300, gt=0)
    """A replica whose /health gives no answer for so long is ended and started again."""
    max_delay_s: float = Field(60, gt=0)


class ServeConfig(Config):
    model_id: str = Field(min_length=1)
    """A hub id, a local directory, or one of our own models: `smollm2`, `tiny`."""
    served_model_name: str | None = None
    """The name clients use. Default: `model_id` as written."""
    host: str = "127.0.0.1"
    port: int = Field(8000, ge=1, le=65535)
    """The first replica's port; the others take the ports after it."""
    replicas: int = Field(1, ge=1)
    runtime: Literal["process", "docker"] = "process"
    engine: EngineChoice = EngineChoice()
    docker: DockerChoice = DockerChoice()
    restart: RestartPolicy = RestartPolicy()
    start_timeout_s: float = Field(1800, gt=0)
    """How long a replica may take to become healthy."""

    max_model_len: int | None = Field(None, gt=0)
    quantization: str | None = None
    dtype: Literal["auto", "half", "float16", "bfloat16", "float", "float32"] | None = None
    gpu_memory_utilization: float | None = Field(None, gt=0, le=1)
    tensor_parallel_size: int = Field(1, ge=1)
    max_num_seqs: int | None = Field(None, ge=1)
    enable_prefix_caching: bool = True
    enforce_eager: bool | None = None
    """Default: on for CPU, where compiling costs minutes, and the engine's own choice on a GPU."""
    kv_offload_gib: float | None = Field(None, gt=0)
    """Host memory for KV blocks that the GPU evicts (native offload), for each replica."""
    cpu_kv_cache_gib: int | None = Field(None, ge=1)
    """KV cache of the CPU engine, for each replica. Default: an eighth of the memory, shared among them."""
    scheduling_policy: Literal["fcfs", "priority"] | None = None
    trust_remote_code: bool = False
    """Run Python code that comes with the model. Only for models whose authors you trust."""

    enable_lora: bool | None = None
    """Default: on when `lora_modules` names any. On, adapters can also be loaded while the server runs."""
    lora_modules: dict[str, str] = {}
    """Adapters to load at the start: name to directory or hub id."""
    max_loras: int | None = Field(None, ge=1)
    """Adapters in one batch. Default: as many as `lora_modules` has, at least 2."""
    max_lora_rank: int | None = Field(None, ge=1)
    """Default: the largest rank found in `lora_modules`, else 16."""

    tool_call_parser: str | None = None
    """Default: by the model's family. `none` switches tool calls off."""
    reasoning_parser: str | None = None
    """Default: by the model's family. `none` switches it off."""
    inference_parameters: InferenceParameters = InferenceParameters()
    extra_args: dict[str, Scalar | list[Scalar] | dict[str, Any] | None] = {}
    """Any other argument of vLLM: name to value; `true` gives the bare flag, `false` its `--no-` form."""
    environment: dict[str, str] = {}
    """More environment variables for the engine."""

    @field_validator("lora_modules", mode="before")
    @classmethod
    def _none_is_no_modules(cls, value: Any) -> Any:
        return {} if value is None else value

    @field_validator("environment", mode="before")
    @classmethod
    def _numbers_are_text(cls, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        return {
            name: str(inner) if isinstance(inner, (int, float)) else inner for name, inner in value.items()
        }

    @model_validator(mode="after")
    def _agree(self) -> "ServeConfig":
        if self.lora_modules and self.enable_lora is False:
            raise ValueError("lora_modules are given but enable_lora is false: set it true or remove them")
        last = self.port + self.replicas - 1
        if last > 65535:
            raise ValueError(f"port {self.port} with {self.replicas} replicas ends at {last}, above 65535")
        for name in self.lora_modules:
            if name == self.name or not name or set(name) & set("@= \t"):
                raise ValueError(
                    f"lora_modules: '{name}' cannot name an adapter: use a plain name other than the model's"
                )
        for name in self.extra_args:
            field = name.strip("-").replace("-", "_")
            if field in UNREACHABLE or not field:
                raise ValueError(
                    f"extra_args: '{name}' cannot be used: servers are asked for their health over plain HTTP"
                )
            if field in type(self).model_fields or field == "model":
                raise ValueError(f"extra_args: '{name}' is a key of its own, '{field}': set it there")
            if is_secret(field):
                raise ValueError(
                    f"extra_args: '{name}' would stand on a command line, which anyone on the machine can read:"
                    " set it in the environment (VLLM_API_KEY, HF_TOKEN)"
                )
        return self

    @property
    def name(self) -> str:
        """The name under which clients ask for the base model."""
        return self.served_model_name or self.model_id

    @property
    def lora(self) -> bool:
        return bool(self.lora_modules) if self.enable_lora is None else self.enable_lora

    @property
    def ports(self) -> list[int]:
        return [self.port + index for index in range(self.replicas)]


def read_serve_config(path: Path, **overrides: Any) -> ServeConfig:
    """The config in `path`, of either shape; `overrides` that are not None win over what it says."""
    flat = flattened(read_mapping(path), str(path))
    flat |= {key: value for key, value in overrides.items() if value is not None}
    return validated(ServeConfig, flat, str(path))


def flattened(value: Mapping[str, Any], source: str) -> dict[str, Any]:
    """The nested shape as the flat one; a flat value is returned as it is.

    In the wild, engine settings stand in `model_config` as often as in `vllm_engine_config`, and sampling
    defaults in any of the three, so all three may hold any key; a key given twice must agree.
    """
    sections = {"model_config", "vllm_engine_config"}
    if "model_information" not in value and not sections & value.keys():
        return dict(value)
    sections.add("inference_parameters")
    outer = {key: inner for key, inner in value.items() if key not in {"model_information", *sections}}
    # Some files leave the outermost key away.
    information = value.get("model_information", {key: value[key] for key in sections & value.keys()})
    if not isinstance(information, Mapping):
        raise ConfigError(f"{source}: model_information must be a mapping with {', '.join(sorted(sections))}")
    if unknown := set(information) - sections:
        word = sorted(unknown)[0]
        hint = nearest(word, list(sections))
        raise ConfigError(f"{source}: unknown key 'model_information.{word}': {hint}")
    flat: dict[str, Any] = dict(outer)
    beside = value.get("inference_parameters") or {}
    if not isinstance(beside, Mapping):
        raise ConfigError(f"{source}: inference_parameters must be a mapping")
    inference: dict[str, Any] = dict(beside)
    for section in ("model_config", "vllm_engine_config", "inference_parameters"):
        content = information.get(section) or {}
        if not isinstance(content, Mapping):
            raise ConfigError(f"{source}: model_information.{section} must be a mapping")
        for key, inner in content.items():
            sampling = section == "inference_parameters" or key in InferenceParameters.model_fields
            target = inference if sampling else flat
            if key in target and target[key] != inner:
                raise ConfigError(f"{source}: '{key}' is given twice, as {target[key]!r} and as {inner!r}")
            target[key] = inner
    if inference:
        flat["inference_parameters"] = inference
    return flat

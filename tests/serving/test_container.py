"""The `docker run` of a replica, word by word."""

from pathlib import Path
from typing import Any

import pytest

from seatrial.config.serve import ServeConfig
from seatrial.errors import ConfigError
from seatrial.serving.container import HUB_CACHE, containerized, mounted
from seatrial.serving.launch import Launch
from seatrial.serving.plan import make_plan, prepare_mounts


def launched(settings: dict[str, Any] | None = None, **parts: Any) -> Launch:
    """Of a replica on port 8001; `parts` are what is not as usual."""
    config = ServeConfig.model_validate({"model_id": "org/model"} | (settings or {}))
    usual = {
        "arguments": ["org/model", "--host", config.host, "--port", "8001"],
        "variables": {},
        "port": 8001,
        "gpus": [],
        "mounts": {},
        "hub_cache": Path("/hub"),
        "store": Path("/store"),
        "secrets": [],
    }
    return containerized(config, **(usual | parts))


def values(launch: Launch, flag: str) -> list[str]:
    """What a flag of `docker run` is given, each time."""
    return [value for word, value in zip(launch.argv, launch.argv[1:], strict=False) if word == flag]


def planned(**settings: Any) -> Launch:
    config = {"model_id": "org/model", "runtime": "docker", "engine": {"device": "cpu"}} | settings
    (launch,) = make_plan(ServeConfig.model_validate(config), print, dry=True).launches
    return launch


def test_the_entrypoints_first_word_is_a_flag_and_the_others_go_before_the_arguments() -> None:
    docker = {"image": "image:1", "entrypoint": ["python3", "-m", "engine"], "extra_args": ["--cpus", "2"]}
    words = launched({"docker": docker}).argv
    assert words[:2] == ["docker", "run"]
    start = words.index("--entrypoint")
    expected = "--entrypoint python3 --cpus 2 image:1 -m engine org/model --host 127.0.0.1 --port 8001"
    assert words[start:] == expected.split()


def test_an_empty_entrypoint_is_refused() -> None:
    with pytest.raises(ValueError, match="entrypoint"):
        launched({"docker": {"entrypoint": []}})


def test_a_model_directory_is_mounted_and_a_hub_id_is_not(tmp_path: Path) -> None:
    assert mounted(str(tmp_path), Path("/hub")) == ("/seatrial/model", {"/seatrial/model": str(tmp_path)})
    assert mounted("org/model", Path("/hub")) == ("org/model", {})


def test_what_lies_in_the_hubs_cache_is_found_in_the_mounted_cache(tmp_path: Path) -> None:
    snapshot = tmp_path / "hub" / "models--org--model" / "snapshots" / "1"
    snapshot.mkdir(parents=True)
    assert mounted(str(snapshot), tmp_path) == (f"{HUB_CACHE}/hub/models--org--model/snapshots/1", {})


def test_mounts_are_read_only_but_for_the_hubs_cache() -> None:
    launch = launched(mounts={"/seatrial/model": "/models/tiny"})
    assert values(launch, "--mount") == [
        "type=bind,source=/models/tiny,target=/seatrial/model,readonly",
        "type=bind,source=/store,target=/store,readonly",
        f"type=bind,source=/hub,target={HUB_CACHE}",
    ]


def test_a_path_may_hold_commas_and_colons() -> None:
    launch = launched(mounts={"/seatrial/adapters/sql:2": "/a,b"})
    assert values(launch, "--mount")[0] == 'type=bind,"source=/a,b",target=/seatrial/adapters/sql:2,readonly'


def test_gpus_are_passed_as_devices_that_the_container_numbers_from_zero() -> None:
    launch = launched(gpus=["2", "3"], variables={"CUDA_VISIBLE_DEVICES": "2,3"})
    assert values(launch, "--gpus") == ['"device=2,3"']
    assert not any("CUDA_VISIBLE_DEVICES" in word for word in launch.argv)
    assert values(launched(), "--gpus") == []


def test_on_the_hosts_network_the_engine_listens_as_a_process_would() -> None:
    launch = launched()
    assert values(launch, "--network") == ["host"]
    assert values(launch, "--publish") == []
    assert values(launch, "--host") == ["127.0.0.1"]


@pytest.mark.parametrize(("host", "published"), [("127.0.0.1", "127.0.0.1"), ("::1", "[::1]")])
def test_on_another_network_the_port_is_published(host: str, published: str) -> None:
    launch = launched({"host": host, "docker": {"network": "bridge"}})
    assert values(launch, "--publish") == [f"{published}:8001:8001"]
    assert values(launch, "--host") == ["0.0.0.0"]


def test_secrets_are_passed_by_name_and_shown_nowhere() -> None:
    variables = {"VLLM_NO_USAGE_STATS": "1", "HF_TOKEN": "hf-secret", "WANDB_API_KEY": "wandb-secret"}
    launch = launched(variables=variables, secrets=["HF_TOKEN", "VLLM_API_KEY"])
    assert values(launch, "--env") == ["VLLM_NO_USAGE_STATS=1", "HF_TOKEN", "WANDB_API_KEY", "VLLM_API_KEY"]
    assert launch.environment == {"HF_TOKEN": "hf-secret", "WANDB_API_KEY": "wandb-secret"}
    assert "secret" not in launch.shown()


def test_what_a_killed_client_leaves_is_removed_by_name() -> None:
    launch = launched()
    assert values(launch, "--name") == ["seatrial-8001"]
    assert launch.clean == ["docker", "rm", "--force", "seatrial-8001"]


def test_the_hosts_python_path_stays_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", "/on/the/host")
    launch = planned()
    assert "PYTHONPATH=/seatrial/package" in values(launch, "--env")
    assert "/on/the/host" not in launch.shown()
    stub = planned(engine={"name": "stub"})
    assert not any("PYTHONPATH" in word or "/seatrial/package" in word for word in stub.argv)


def test_vllm_on_a_cpu_gets_our_plugin_from_outside() -> None:
    parts = {"target=/seatrial/package/seatrial", "target=/seatrial/package/seatrial-0.1.0.dist-info"}
    assert parts <= {word for mount in values(planned(), "--mount") for word in mount.split(",")}


def test_places_of_the_user_may_be_short(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    launch = planned(docker={"mounts": {"~/data": "/data"}})
    assert f"type=bind,source={tmp_path}/data,target=/data,readonly" in values(launch, "--mount")


def test_what_is_mounted_into_every_container_is_made_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SEATRIAL_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hub"))
    prepare_mounts(ServeConfig(model_id="tiny"))
    assert (tmp_path / "home" / "adapters").is_dir()
    assert (tmp_path / "hub").is_dir()


def test_a_mount_that_is_not_there_is_refused(tmp_path: Path) -> None:
    config = {"model_id": "tiny", "docker": {"mounts": {str(tmp_path / "gone"): "/data"}}}
    with pytest.raises(ConfigError, match=r"docker\.mounts: no such directory"):
        prepare_mounts(ServeConfig.model_validate(config))

import json
from pathlib import Path

import pytest

from seatrial.config.endpoints import read_pool
from seatrial.errors import ConfigError


def write(tmp_path: Path, value: object) -> Path:
    path = tmp_path / "model_config_test.json"
    path.write_text(json.dumps(value))
    return path


def test_a_pool_maps_models_to_endpoints_and_skips_comments(tmp_path: Path) -> None:
    pool = read_pool(
        write(
            tmp_path,
            {
                "_comment": "which servers",
                "org/model": [{"ip_addr": "node-5", "port": 1800}, {"ip_addr": "::1", "port": 1801}],
                "retrieval": [{"ip_addr": "node-13", "port": 8765}],
            },
        )
    )
    assert list(pool) == ["org/model", "retrieval"]
    assert [endpoint.url for endpoint in pool["org/model"]] == ["http://node-5:1800", "http://[::1]:1801"]


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"m": []}, "at least one"),
        ({"m": {"ip_addr": "a", "port": 1}}, "must have a list"),
        ({"m": ["a:1"]}, "must be {ip_addr, port}"),
        ({"m": [{"ip_addr": "a"}]}, "'port' is missing"),
        ({"m": [{"ip_addr": "a", "port": 99999}]}, "port"),
        ({"m": [{"ip_adr": "a", "port": 1}]}, "did you mean 'ip_addr'?"),
        ({"_comment": "nothing else"}, "names no model"),
    ],
)
def test_what_is_wrong_is_said(tmp_path: Path, value: object, message: str) -> None:
    with pytest.raises(ConfigError) as error:
        read_pool(write(tmp_path, value))
    assert message in error.value.message

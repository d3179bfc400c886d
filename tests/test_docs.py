"""The documentation is true where a test can tell: its commands parse and its links lead somewhere."""

import re
import shlex
from pathlib import Path

import pytest
import yaml

from seatrial.cli.main import VERBS, parsed
from seatrial.config.serve import ServeConfig

ROOT = Path(__file__).parents[1]
PAGES = [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")]
CODE = re.compile(r"```bash\n(.*?)```", re.DOTALL)
LINK = re.compile(r"\]\(([^)#:]+)\)")


def commands() -> list[str]:
    lines = [
        line for page in PAGES for block in CODE.findall(page.read_text()) for line in block.splitlines()
    ]
    return [line for line in lines if line.startswith("seatrial ")]


@pytest.mark.parametrize("line", commands())
def test_every_command_shown_can_be_parsed(line: str) -> None:
    assert parsed(shlex.split(line, comments=True)[1:]).run


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_leads_to_a_file(page: Path) -> None:
    for target in LINK.findall(page.read_text()):
        assert (page.parent / target).exists(), target


def test_the_readme_shows_every_verb() -> None:
    text = (ROOT / "README.md").read_text()
    assert all(f"seatrial {verb}" in text or f"make {verb}" in text for verb in VERBS)


def test_the_readmes_config_is_valid() -> None:
    [block] = re.findall(r"```yaml\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert ServeConfig.model_validate(yaml.safe_load(block)).replicas == 2


def test_every_key_of_the_config_is_in_the_guide() -> None:
    text = (ROOT / "docs" / "serve.md").read_text()
    missing = [key for key in ServeConfig.model_fields if f"`{key}" not in text]
    assert not missing

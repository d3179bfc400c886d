import json
from pathlib import Path

import pytest

from seatrial.errors import ConfigError
from seatrial.serving.stub.answers.chat import Message
from seatrial.serving.stub.answers.reply import Call, Reply
from seatrial.serving.stub.answers.script import Script, last_asked, read_script, turn_of

SCRIPT = """
rules:
  - {match: "^list", turn: 0, tool_calls: [{name: run, arguments: {command: ls}}]}
  - {match: "^list", reply: "a b"}
  - {model: tuned, reply: "better"}
  - {match: "h.llo", reply: "hi", model: base}
"""


@pytest.fixture
def script(tmp_path: Path) -> Script:
    path = tmp_path / "script.yaml"
    path.write_text(SCRIPT)
    return read_script(path)


def test_the_first_rule_that_fits_answers(script: Script) -> None:
    assert script.reply("base", "list files", 0) == Reply("", (Call("run", '{"command": "ls"}'),))
    assert script.reply("base", "list files", 1) == Reply("a b")
    assert script.reply("tuned", "hello") == Reply("better")
    assert script.reply("base", "oh hello") == Reply("hi")
    assert script.reply("base", "what else") is None


def test_a_json_file_says_the_same(tmp_path: Path) -> None:
    path = tmp_path / "script.json"
    path.write_text(json.dumps([{"match": "x", "reply": "y"}]))
    assert read_script(path).reply("any", "x") == Reply("y")


def test_what_was_asked_last_and_which_turn_it_is() -> None:
    messages: list[Message] = [
        {"role": "user", "content": "one"},
        {"role": "assistant", "content": "two"},
        {"role": "tool", "content": [{"type": "text", "text": "three"}]},
        {"role": "assistant", "content": "four"},
    ]
    assert (last_asked(messages), turn_of(messages)) == ("three", 2)
    assert last_asked([{"role": "system", "content": "only this"}]) == ""


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("rules: {}", "expected a list of rules"),
        ("rules: [", "is not valid YAML"),
        ("rules: [say]", "rule 1 is not a mapping"),
        ("rules: [{reply: a}, {replay: b}]", "rule 2 has the unknown key 'replay'"),
        ("rules: [{match: a}]", "rule 1 says nothing"),
        ("rules: [{match: '(', reply: b}]", "`match` is not a regular expression"),
        ("rules: [{turn: first, reply: b}]", "`turn` is not a number"),
        ("rules: [{tool_calls: [{arguments: {}}]}]", "lacks its name"),
    ],
)
def test_a_bad_script_is_refused_with_a_cure(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "script.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError) as error:
        read_script(path)
    assert says in error.value.message
    assert error.value.cure


def test_a_missing_script_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot read the script"):
        read_script(tmp_path / "none.yaml")

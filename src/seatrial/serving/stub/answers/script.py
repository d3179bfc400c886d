"""Scripted answers: rules from a file, tried in order on what the model is asked.

rules:
  - match: "list the files"      # a regular expression, searched in the last user or tool message
    model: my-adapter            # only under this name
    turn: 0                      # only after so many assistant messages
    reply: "I will look."
    tool_calls:
      - {name: run, arguments: {command: ls}}
"""

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from seatrial.errors import ConfigError
from seatrial.serving.stub.answers.chat import Message, text_of
from seatrial.serving.stub.answers.reply import Call, Reply

KEYS = ("match", "model", "turn", "reply", "tool_calls")


@dataclass(frozen=True, slots=True)
class Rule:
    reply: Reply
    match: re.Pattern[str] | None = None
    model: str | None = None
    turn: int | None = None

    def fits(self, model: str, asked: str, turn: int) -> bool:
        return (
            (self.model is None or self.model == model)
            and (self.turn is None or self.turn == turn)
            and (self.match is None or self.match.search(asked) is not None)
        )


@dataclass(frozen=True, slots=True)
class Script:
    rules: tuple[Rule, ...] = ()

    def reply(self, model: str, asked: str, turn: int = 0) -> Reply | None:
        return next((rule.reply for rule in self.rules if rule.fits(model, asked, turn)), None)


def last_asked(messages: list[Message]) -> str:
    """The text of the last user or tool message."""
    asked = (m for m in reversed(messages) if m.get("role") in ("user", "tool"))
    return text_of(next(asked, {}).get("content"))


def turn_of(messages: list[Message]) -> int:
    return sum(message.get("role") == "assistant" for message in messages)


def read_script(path: Path) -> Script:
    content = parsed(path)
    rules = content.get("rules") if isinstance(content, dict) else content
    if not isinstance(rules, list):
        raise ConfigError(f"{path}: expected a list of rules", cure="start the file with `rules:` and a list")
    return Script(tuple(read_rule(rule, f"{path}: rule {number}") for number, rule in enumerate(rules, 1)))


def parsed(path: Path) -> Any:
    try:
        text = path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(
            f"cannot read the script {path}: {error}", cure="give --script an existing file"
        ) from None
    if path.suffix == ".json":
        try:
            return json.loads(text)
        except ValueError as error:
            raise ConfigError(
                f"{path} is not valid JSON: {error}", cure="mend the file at that place"
            ) from None
    import yaml  # not at the top: in a bare container the stand-in must start without it

    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ConfigError(f"{path} is not valid YAML: {error}", cure="mend the file at that place") from None


def read_rule(rule: Any, where: str) -> Rule:
    if not isinstance(rule, dict):
        raise ConfigError(f"{where} is not a mapping", cure=f"give it keys out of: {', '.join(KEYS)}")
    if unknown := [str(key) for key in rule if key not in KEYS]:
        raise ConfigError(f"{where} has the unknown key {unknown[0]!r}", cure=f"use only: {', '.join(KEYS)}")
    if rule.get("reply") is None and not rule.get("tool_calls"):
        raise ConfigError(f"{where} says nothing", cure="give it a `reply`, or `tool_calls`, or both")
    if not isinstance(rule.get("turn"), int | None):
        raise ConfigError(
            f"{where}: `turn` is not a number", cure="count the assistant messages before, from 0"
        )
    try:
        match = None if rule.get("match") is None else re.compile(str(rule["match"]))
    except re.error as error:
        raise ConfigError(f"{where}: `match` is not a regular expression: {error}", cure="mend it") from None
    calls = tuple(read_call(call, where) for call in rule.get("tool_calls") or ())
    return Rule(Reply(str(rule.get("reply") or ""), calls), match, rule.get("model"), rule.get("turn"))


def read_call(call: Any, where: str) -> Call:
    if not isinstance(call, dict) or not isinstance(call.get("name"), str):
        raise ConfigError(f"{where}: a tool call lacks its name", cure="write {name: NAME, arguments: {...}}")
    arguments = call.get("arguments", {})
    return Call(call["name"], arguments if isinstance(arguments, str) else json.dumps(arguments))

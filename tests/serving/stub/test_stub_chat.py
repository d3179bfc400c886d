from itertools import pairwise
from typing import Any

from seatrial.serving.stub.answers.chat import render
from seatrial.serving.stub.answers.reply import Call, Reply

QUESTION = {"role": "user", "content": "which files?"}
CALL = Call("run", '{"command": "ls"}')
CALLED: dict[str, Any] = {
    "role": "assistant",
    "content": None,
    "tool_calls": [
        {"id": "1", "type": "function", "function": {"name": CALL.name, "arguments": CALL.arguments}}
    ],
}
RESULT = {"role": "tool", "tool_call_id": "1", "content": "a b"}
TOOLS = [{"type": "function", "function": {"name": "run"}}]


def test_appending_messages_only_appends_text() -> None:
    messages: list[dict[str, Any]] = [{"role": "system", "content": "be brief"}, QUESTION, CALLED, RESULT]
    texts = [render(messages[:count], TOOLS, generate=False) for count in range(1, 5)]
    for shorter, longer in pairwise(texts):
        assert longer.startswith(shorter)


def test_the_next_prompt_begins_with_the_last_prompt_and_its_answer() -> None:
    asked = render([QUESTION], TOOLS)
    assert render([QUESTION, CALLED, RESULT], TOOLS).startswith(asked + Reply(calls=(CALL,)).text)
    answered = {"role": "assistant", "content": "none"}
    assert render([QUESTION, answered, QUESTION], TOOLS).startswith(asked + Reply("none").text)


def test_words_and_calls_of_one_answer_render_as_they_were_said() -> None:
    said = Reply("I will look.", (CALL, CALL)).text
    message = CALLED | {"content": "I will look.", "tool_calls": CALLED["tool_calls"] * 2}
    assert said in render([QUESTION, message])


def test_content_may_be_parts() -> None:
    parts = [{"type": "text", "text": "one "}, {"type": "text", "text": "two"}, {"type": "image_url"}]
    assert "one two<|image_url|>" in render([{"role": "user", "content": parts}])

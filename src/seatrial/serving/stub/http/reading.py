"""The body of a request, checked as vLLM checks it and in its words."""

from typing import Any

from seatrial.serving.stub.answers.chat import Message, render
from seatrial.serving.stub.http.asked import Asked, Body, Prompt
from seatrial.serving.stub.http.models import Models
from seatrial.serving.stub.http.refusals import Refused, bad_field, bad_value

MOST_LOGPROBS = 20
USUAL_LENGTH = 16
"""The `max_tokens` of a completion that does not give one."""


def read_chat(body: Body, models: Models) -> Asked:
    messages = body.get("messages")
    if "messages" not in body:
        raise bad_field("messages", "missing", "Field required")
    if not isinstance(messages, list):
        raise bad_field("messages", "list_type", "Input should be a valid list")
    if not messages:
        raise Refused("Cannot apply chat template to an empty conversation. Provide at least one message.")
    if not all(isinstance(message, dict) and "role" in message for message in messages):
        raise bad_field("messages", "missing", "Field required")
    top = integer(body, "top_logprobs") or 0
    if top and not body.get("logprobs"):
        raise bad_value("when using `top_logprobs`, `logprobs` must be set to true.", "top_logprobs")
    tools = tools_of(body)
    most = integer(body, "max_completion_tokens")
    return asked(
        body,
        models,
        chat=True,
        prompts=[Prompt.of_text(rendered(messages, tools))],
        max_tokens=integer(body, "max_tokens") if most is None else most,
        logprobs=top if body.get("logprobs") else None,
        messages=messages,
        tools=tools,
        tool_choice=choice_of(body, tools),
    )


def rendered(messages: list[Message], tools: list[Body]) -> str:
    try:
        return render(messages, tools)
    except (AttributeError, TypeError):  # tool calls of another shape than the API's
        raise bad_field("messages", "model_attributes_type", "Input should be a valid message") from None


def read_completion(body: Body, models: Models) -> Asked:
    if not body.get("prompt") and body.get("prompt") != []:
        raise bad_value("Either prompt or prompt_embeds must be provided and non-empty.", "prompt")
    return asked(
        body,
        models,
        chat=False,
        prompts=prompts_of(body["prompt"]),
        max_tokens=integer(body, "max_tokens") if "max_tokens" in body else USUAL_LENGTH,
        logprobs=integer(body, "logprobs"),
    )


def asked(body: Body, models: Models, *, max_tokens: int | None, logprobs: int | None, **rest: Any) -> Asked:
    """The fields that both kinds of request have."""
    name = body.get("model")
    if not isinstance(name, str | None):
        raise bad_field("model", "string_type", "Input should be a valid string")
    model, adapter = models.find(name)
    options = body.get("stream_options") or {}
    if not isinstance(options, dict):
        raise bad_field(
            "stream_options", "model_attributes_type", "Input should be a valid dictionary or object"
        )
    if options and not body.get("stream"):
        raise bad_value("Stream options can only be defined when `stream=True`.", "stream_options")
    choices = 1 if body.get("n") is None else integer(body, "n") or 0
    if choices < 1:
        raise Refused(f"n must be at least 1, got {choices}.")
    if max_tokens is not None and max_tokens > models.max_model_len:
        raise bad_value(
            f"max_tokens={max_tokens} cannot be greater than max_model_len={models.max_model_len}. "
            "Please request fewer output tokens.",
            "max_tokens",
            max_tokens,
        )
    if logprobs is not None and logprobs > MOST_LOGPROBS:
        raise bad_value(
            f"Requested sample logprobs of {logprobs}, which is greater than max allowed: {MOST_LOGPROBS}",
            "logprobs",
            logprobs,
        )
    return Asked(
        model=model,
        adapter=adapter,
        choices=choices,
        max_tokens=max_tokens,
        stops=stops_of(body),
        include_stop=bool(body.get("include_stop_str_in_output")),
        stream=bool(body.get("stream")),
        include_usage=bool(options.get("include_usage")),
        continuous_usage=bool(options.get("continuous_usage_stats")),
        logprobs=logprobs,
        return_token_ids=bool(body.get("return_token_ids")),
        priority=integer(body, "priority") or 0,
        **rest,
    )


def integer(body: Body, name: str) -> int | None:
    value = body.get(name)
    if value is None or (isinstance(value, int) and not isinstance(value, bool)):
        return value
    if isinstance(value, float) and value.is_integer():
        return int(value)
    raise bad_field(name, "int_type", "Input should be a valid integer")


def stops_of(body: Body) -> tuple[str, ...]:
    stop = body.get("stop") or ()
    stops = (stop,) if isinstance(stop, str) else tuple(stop) if isinstance(stop, list) else stop
    if not isinstance(stops, tuple) or not all(isinstance(text, str) for text in stops):
        raise bad_field("stop", "string_type", "Input should be a valid string")
    return stops


def tools_of(body: Body) -> list[Body]:
    tools = body.get("tools") or []
    if not isinstance(tools, list):
        raise bad_field("tools", "list_type", "Input should be a valid list")
    for tool in tools:
        function = tool.get("function") if isinstance(tool, dict) else None
        if not isinstance(function, dict) or not isinstance(function.get("name"), str):
            raise bad_field("tools.0.function", "missing", "Field required")
    return tools


def choice_of(body: Body, tools: list[Body]) -> str | Body:
    choice = body.get("tool_choice") or ("auto" if tools else "none")
    if choice == "none":
        return "none"
    if not tools:
        raise bad_value("When using `tool_choice`, `tools` must be set.", "tool_choice")
    if isinstance(choice, dict):
        name = (choice.get("function") or {}).get("name")
        if name not in [tool["function"]["name"] for tool in tools]:
            message = "The tool specified in `tool_choice` does not match any of the specified `tools`"
            raise bad_value(message, "tool_choice")
        return choice
    if choice not in ("auto", "required"):
        raise bad_value(f"Invalid value for `tool_choice`: {choice}!", "tool_choice")
    return str(choice)


def prompts_of(prompt: Any) -> list[Prompt]:
    """A text, the ids of one prompt, a list of texts, or a list of prompts' ids."""
    if isinstance(prompt, str):
        return [Prompt.of_text(prompt)]
    if not prompt:
        raise Refused("You must pass at least one prompt")
    if isinstance(prompt, list):
        if all(isinstance(part, int) for part in prompt):
            return [Prompt.of_ids(prompt)]
        if all(part and isinstance(part, str) for part in prompt):
            return [Prompt.of_text(part) for part in prompt]
        if all(part and isinstance(part, list) and all(isinstance(x, int) for x in part) for part in prompt):
            return [Prompt.of_ids(part) for part in prompt]
    raise bad_field("prompt", "string_type", "Input should be a valid string")

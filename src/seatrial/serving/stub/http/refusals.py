"""A request the engine will not serve, in the shape in which vLLM says so."""

from typing import Any


class Refused(Exception):
    def __init__(
        self,
        message: str,
        *,
        status: int = 400,
        kind: str = "BadRequestError",
        param: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.status = status
        self.kind = kind
        self.param = param

    @property
    def body(self) -> dict[str, Any]:
        error = {"message": self.message, "type": self.kind, "param": self.param, "code": self.status}
        return {"error": error}


def bad_value(message: str, param: str, value: object = None) -> Refused:
    """A value that vLLM itself checks; it names the parameter in the message as well."""
    suffix = f"(parameter={param})" if value is None else f"(parameter={param}, value={value})"
    return Refused(f"{message} {suffix}", param=param)


def bad_field(field: str, kind: str, says: str) -> Refused:
    """A body whose shape is wrong; vLLM lets pydantic word this."""
    loc = f"body.{field}" if field else "body"
    message = f"1 validation error:\n  {{'type': '{kind}', 'loc': '{loc}', 'msg': '{says}'}}"
    return Refused(message, kind="Bad Request", param=loc)


def unknown_model(name: str, served: list[str]) -> Refused:
    return Refused(
        f"The model `{name}` does not exist. Valid aliases: {', '.join(served)}.",
        status=404,
        kind="NotFoundError",
        param="model",
    )

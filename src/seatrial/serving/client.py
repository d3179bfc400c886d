"""A client of one vLLM-compatible server: what it serves, completions, and its adapters."""

import json
import os
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit

import aiohttp

from seatrial.errors import BadInput, ServerError
from seatrial.serving.resolver import AbandonableResolver


@dataclass(frozen=True)
class ModelCard:
    """One entry of `/v1/models`."""

    name: str
    root: str
    """The directory or hub id its weights came from."""
    parent: str | None
    """The base model of an adapter; None for the base itself."""
    max_model_len: int | None


class Refused(ServerError):
    """The server answered with an error status."""

    def __init__(self, url: str, status: int, reason: str) -> None:
        cure = "set VLLM_API_KEY to the server's key" if status == 401 else ""
        super().__init__(f"{url} answered {status}: {reason}", cure=cure)
        self.status = status
        self.reason = reason


class Client:
    """Speaks to one server. Proxies in the environment are not used: a call goes where the URL says."""

    def __init__(self, url: str, *, timeout_s: float = 60, api_key: str | None = None) -> None:
        self.url = server_url(url)
        key = api_key or os.environ.get("VLLM_API_KEY")
        self._headers = {"Authorization": f"Bearer {key}"} if key else {}
        self._timeout = aiohttp.ClientTimeout(total=timeout_s)
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        connector = aiohttp.TCPConnector(resolver=AbandonableResolver())
        self._session = aiohttp.ClientSession(
            headers=self._headers, timeout=self._timeout, connector=connector
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._session is not None
        await self._session.close()

    async def healthy(self) -> bool:
        """Whether `/health` answers 200 now."""
        try:
            await self._call("GET", "/health")
        except ServerError:
            return False
        return True

    async def version(self) -> str:
        """vLLM's own version; empty for a server that does not tell."""
        try:
            answer = await self._call("GET", "/version")
        except Refused:
            return ""
        return str(answer.get("version", "")) if isinstance(answer, dict) else ""

    async def models(self) -> list[ModelCard]:
        answer = await self._call("GET", "/v1/models")
        try:
            return [
                ModelCard(
                    card["id"], card.get("root") or card["id"], card.get("parent"), card.get("max_model_len")
                )
                for card in answer["data"]
            ]
        except (KeyError, TypeError):
            raise ServerError(
                f"{self.url}/v1/models did not answer in OpenAI's form",
                cure="is this the URL of a model server?",
            ) from None

    async def base_and_adapters(self) -> tuple[ModelCard, list[ModelCard]]:
        cards = await self.models()
        bases = [card for card in cards if card.parent is None]
        if not bases:
            raise ServerError(f"{self.url} serves no base model")
        return bases[0], [card for card in cards if card.parent is not None]

    async def complete(self, model: str, prompt: str, **parameters: Any) -> dict[str, Any]:
        body = {"model": model, "prompt": prompt, **parameters}
        answer: dict[str, Any] = await self._call("POST", "/v1/completions", body)
        return answer

    async def chat(self, model: str, messages: list[dict[str, Any]], **parameters: Any) -> dict[str, Any]:
        body = {"model": model, "messages": messages, **parameters}
        answer: dict[str, Any] = await self._call("POST", "/v1/chat/completions", body)
        return answer

    async def load_adapter(self, name: str, path: str, *, in_place: bool = False) -> None:
        body = {"lora_name": name, "lora_path": path}
        await self._call("POST", "/v1/load_lora_adapter", body | ({"load_inplace": True} if in_place else {}))

    async def unload_adapter(self, name: str) -> None:
        await self._call("POST", "/v1/unload_lora_adapter", {"lora_name": name})

    async def _call(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
        assert self._session is not None, "use the client as an async context manager"
        try:
            async with self._session.request(method, self.url + path, json=body) as response:
                text = await response.text()
                if response.status >= 400:
                    raise Refused(self.url + path, response.status, _reason(text))
                if response.content_type != "application/json":
                    return text
                return await response.json()
        except TimeoutError:
            raise ServerError(
                f"{self.url}{path} gave no answer within {self._timeout.total:.0f} s",
                cure="is the server overloaded or stopped? its log tells",
            ) from None
        except (aiohttp.ClientError, ValueError) as error:
            system = getattr(error, "os_error", None)
            raise ServerError(
                f"cannot reach {self.url}: {(system and system.strerror) or error}",
                cure="check the URL, and that the server runs",
            ) from None


def server_url(text: str) -> str:
    """The root of a server from what a user may write: with or without scheme, `/v1` and a last slash."""
    url = text if "://" in text else f"http://{text}"
    try:
        parts = urlsplit(url)
        valid = (
            parts.scheme in ("http", "https") and parts.hostname and (parts.port is None or parts.port > 0)
        )
    except ValueError:
        valid = None
    if not valid:
        raise BadInput(f"'{text}' is not the URL of a server", cure="write it like http://127.0.0.1:8000")
    return url.rstrip("/").removesuffix("/v1")


def is_local(url: str) -> bool:
    """Whether the server's address is one of this machine's, so that it shares our file system."""
    host = urlsplit(url).hostname or ""
    try:
        for family, kind, protocol, _, address in socket.getaddrinfo(host, 0, type=socket.SOCK_DGRAM):
            with socket.socket(family, kind, protocol) as probe:
                probe.bind(address)  # the system lets one bind to its own addresses only; nothing is sent
                return True
    except OSError:
        return False
    return False


def _reason(text: str) -> str:
    """The message inside an error body of OpenAI's form, else the body's beginning."""
    try:
        body = json.loads(text)
    except ValueError:
        return " ".join(text.split())[:120] or "no body"
    error = body.get("error", body) if isinstance(body, dict) else body
    message = error.get("message") if isinstance(error, dict) else None
    return str(message or text[:300])

"""The routes: a path and a method to what answers them."""

import hmac
import json
from collections.abc import Awaitable, Callable

from aiohttp import web

from seatrial.serving.stub.answers.chat import render
from seatrial.serving.stub.answers.script import Script
from seatrial.serving.stub.answers.tokens import pieces, token_ids
from seatrial.serving.stub.core.batching import Batch
from seatrial.serving.stub.core.prefix_cache import PrefixCache
from seatrial.serving.stub.engine import Engine
from seatrial.serving.stub.http.asked import Body
from seatrial.serving.stub.http.completions import Completions, json_response
from seatrial.serving.stub.http.models import Models
from seatrial.serving.stub.http.reading import read_chat, read_completion, tools_of
from seatrial.serving.stub.http.refusals import Refused, bad_field
from seatrial.serving.stub.metrics import Metrics
from seatrial.serving.stub.settings import Settings

VERSION = "0.32.0+stub"
"""The vLLM whose answers these are shaped after."""

Answering = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]


class App:
    """Handles every request, by a look into a table: aiohttp's own router would cost each one more."""

    def __init__(self, settings: Settings, script: Script, models: Models) -> None:
        cache = PrefixCache(
            settings.num_gpu_blocks, settings.block_size, keeps_prefixes=settings.prefix_caching
        )
        batch = Batch(
            cache,
            settings.costs,
            max_sequences=settings.max_num_seqs,
            max_tokens=settings.max_num_batched_tokens,
            max_adapters=settings.max_loras,
            by_priority=settings.by_priority,
        )
        self._engine = Engine(batch, Metrics(settings.names[0]))
        self._models = models
        self._keys = [key.encode() for key in settings.api_keys]
        self._completions = Completions(self._engine, models, script, settings)
        self._routes: dict[str, dict[str, Answering]] = {
            "/health": {"GET": self._alive},
            "/ping": {"GET": self._alive, "POST": self._alive},
            "/version": {"GET": self._version},
            "/metrics": {"GET": self._metrics},
            "/tokenize": {"POST": self._tokenize},
            "/v1/models": {"GET": self._list_models},
            "/v1/chat/completions": {"POST": self._chat},
            "/v1/completions": {"POST": self._complete},
        }
        if settings.runtime_lora:
            self._routes["/v1/load_lora_adapter"] = {"POST": self._load_adapter}
            self._routes["/v1/unload_lora_adapter"] = {"POST": self._unload_adapter}
        if settings.developer:
            self._routes["/reset_prefix_cache"] = {"POST": self._reset_prefix_cache}

    async def __call__(self, request: web.BaseRequest) -> web.StreamResponse:
        path = request.raw_path.partition("?")[0]
        if self._keys and path.startswith("/v1") and not self._admits(request):
            return json_response({"error": "Unauthorized"}, 401)
        methods = self._routes.get(path)
        if methods is None:
            return json_response({"detail": "Not Found"}, 404)
        answering = methods.get(request.method)
        if answering is None:
            return json_response({"detail": "Method Not Allowed"}, 405)
        try:
            return await answering(request)
        except Refused as refused:
            return json_response(refused.body, refused.status)

    def _admits(self, request: web.BaseRequest) -> bool:
        scheme, _, given = request.headers.get("Authorization", "").partition(" ")
        key = given.encode("utf-8", "surrogateescape")
        return scheme.lower() == "bearer" and any(hmac.compare_digest(key, known) for known in self._keys)

    async def _alive(self, _: web.BaseRequest) -> web.Response:
        return web.Response()

    async def _version(self, _: web.BaseRequest) -> web.Response:
        return json_response({"version": VERSION})

    async def _metrics(self, _: web.BaseRequest) -> web.Response:
        text = self._engine.metrics.text(self._engine.batch)
        headers = {"Content-Type": "text/plain; version=0.0.4; charset=utf-8"}
        return web.Response(body=text.encode(), headers=headers)

    async def _list_models(self, _: web.BaseRequest) -> web.Response:
        return json_response({"object": "list", "data": self._models.cards()})

    async def _chat(self, request: web.BaseRequest) -> web.StreamResponse:
        return await self._completions.answer(request, await body_of(request), read_chat)

    async def _complete(self, request: web.BaseRequest) -> web.StreamResponse:
        return await self._completions.answer(request, await body_of(request), read_completion)

    async def _load_adapter(self, request: web.BaseRequest) -> web.Response:
        return web.Response(text=self._models.load(await body_of(request)))

    async def _unload_adapter(self, request: web.BaseRequest) -> web.Response:
        return web.Response(text=self._models.unload(await body_of(request)))

    async def _reset_prefix_cache(self, _: web.BaseRequest) -> web.Response:
        return json_response({"success": self._engine.batch.cache.reset()})

    async def _tokenize(self, request: web.BaseRequest) -> web.Response:
        body = await body_of(request)
        self._models.find(body.get("model"))
        if isinstance(body.get("messages"), list):
            generate = body.get("add_generation_prompt", True)
            text = render(body["messages"], tools_of(body), generate=generate)
        elif isinstance(body.get("prompt"), str):
            text = body["prompt"]
        else:
            raise bad_field("prompt", "missing", "Field required")
        parts = pieces(text)
        shown = parts if body.get("return_token_strs") else None
        length = self._models.max_model_len
        return json_response(
            {"count": len(parts), "max_model_len": length, "tokens": token_ids(parts), "token_strs": shown}
        )


async def body_of(request: web.BaseRequest) -> Body:
    kind = request.headers.get("Content-Type", "")
    if not kind.startswith("application/json"):
        message = "1 validation error:\n  Unsupported Media Type: Only 'application/json' is allowed"
        raise Refused(message, kind="Bad Request")
    try:
        body = json.loads(await request.content.read())
    except ValueError:
        raise bad_field("", "json_invalid", "JSON decode error") from None
    if not isinstance(body, dict):
        raise bad_field("", "model_attributes_type", "Input should be a valid dictionary or object")
    return body

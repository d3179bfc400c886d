"""Chat and text completions: a request in, one body or a stream of events out."""

import asyncio
import json
from collections.abc import Callable

from aiohttp import web

from seatrial.serving.stub.answers.script import Script
from seatrial.serving.stub.core.step import Gain
from seatrial.serving.stub.engine import Engine
from seatrial.serving.stub.http.asked import Asked, Body
from seatrial.serving.stub.http.chunks import DONE, Chunks, event, usage_chunk
from seatrial.serving.stub.http.models import Models
from seatrial.serving.stub.http.refusals import Refused
from seatrial.serving.stub.http.shapes import Stamp, whole_body
from seatrial.serving.stub.http.work import Choice, choices_of, usage_of
from seatrial.serving.stub.settings import Settings

Reader = Callable[[Body, Models], Asked]


class Completions:
    def __init__(self, engine: Engine, models: Models, script: Script, settings: Settings) -> None:
        self._engine = engine
        self._models = models
        self._script = script
        self._settings = settings

    async def answer(self, request: web.BaseRequest, body: Body, read: Reader) -> web.StreamResponse:
        asked = read(body, self._models)
        if asked.tool_choice == "auto" and not self._settings.auto_tool_choice:
            raise Refused(
                '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set'
            )
        choices = choices_of(asked, self._models, self._script, self._settings)
        stamp = Stamp.of(asked, self._models.root, request.headers.get("X-Request-Id"))
        try:
            if asked.stream:
                return await self._stream(request, asked, stamp, choices)
            return await self._whole(asked, stamp, choices)
        finally:
            # A client that hung up is served no further, and its blocks are free for others.
            for choice in choices:
                self._engine.abort(choice.sequence)

    async def _whole(self, asked: Asked, stamp: Stamp, choices: list[Choice]) -> web.Response:
        finished = asyncio.get_running_loop().create_future()
        open_choices = len(choices)

        def heard(gain: Gain) -> None:
            nonlocal open_choices
            open_choices -= gain.done
            if not open_choices and not finished.done():
                finished.set_result(None)

        for choice in choices:
            self._engine.submit(choice.sequence, choice.answer.finish, heard)
        await finished
        usage = usage_of(asked, choices, self._settings, whole=True)
        return json_response(whole_body(asked, stamp, choices, usage))

    async def _stream(
        self, request: web.BaseRequest, asked: Asked, stamp: Stamp, choices: list[Choice]
    ) -> web.StreamResponse:
        gains: asyncio.Queue[Gain] = asyncio.Queue()
        chunks = {choice.sequence: Chunks(asked, stamp, choice) for choice in choices}
        for choice in choices:
            self._engine.submit(choice.sequence, choice.answer.finish, gains.put_nowait)
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream; charset=utf-8"})
        ready: list[bytes] = []
        open_choices, opened = len(choices), False
        while open_choices:
            gain = await gains.get()
            if not opened:
                opened = True
                await response.prepare(request)
                ready += [event(body) for each in chunks.values() for body in each.opening()]
            ready += [event(body) for body in chunks[gain.sequence].next(gain.tokens)]
            open_choices -= gain.done
            if gains.empty():
                await response.write(b"".join(ready))
                ready.clear()
        if asked.include_usage:
            usage = usage_of(asked, choices, self._settings, whole=False)
            ready.append(event(usage_chunk(asked, stamp, usage)))
        await response.write(b"".join([*ready, DONE]))
        await response.write_eof()
        return response


def json_response(body: object, status: int = 200) -> web.Response:
    headers = {"Content-Type": "application/json"}
    return web.Response(body=json.dumps(body).encode(), status=status, headers=headers)

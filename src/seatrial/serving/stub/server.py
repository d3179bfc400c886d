"""The stand-in as a process: starts, listens, stops when told to."""

import asyncio
import errno
import signal
import sys
from pathlib import Path

from aiohttp import web

from seatrial.config.addresses import url_of
from seatrial.errors import BadInput, EngineError
from seatrial.serving.stub.answers.script import Script, read_script
from seatrial.serving.stub.http.app import App
from seatrial.serving.stub.http.models import Models
from seatrial.serving.stub.http.refusals import Refused
from seatrial.serving.stub.settings import Settings

GRACE_SECONDS = 0.5
"""How long a request in flight may still run after the signal to stop."""


def serve(settings: Settings) -> int:
    """Serve until SIGTERM or SIGINT, and return the exit code."""
    script = read_script(Path(settings.script)) if settings.script else Script()
    return asyncio.run(_serve(settings, script))


async def _serve(settings: Settings, script: Script) -> int:
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopping.set)
    if await stopped_within(stopping, settings.startup_seconds):
        return 0
    if settings.fail_start is not None:
        print(settings.fail_start, file=sys.stderr, flush=True)
        return 1
    app = App(settings, script, loaded_models(settings))
    server = web.Server(app, handler_cancellation=True, access_log=None)
    runner = web.ServerRunner(server, shutdown_timeout=GRACE_SECONDS)
    await runner.setup()
    try:
        await listen(runner, settings)
        await stopping.wait()
    finally:
        await runner.cleanup()
    return 0


async def stopped_within(stopping: asyncio.Event, seconds: float) -> bool:
    try:
        await asyncio.wait_for(stopping.wait(), seconds)
    except TimeoutError:
        return False
    return True


def loaded_models(settings: Settings) -> Models:
    models = Models(settings.model, settings.names, settings.max_model_len, settings.max_lora_rank)
    for name, path in settings.lora_modules:
        try:
            models.load({"lora_name": name, "lora_path": path})
        except Refused as refused:
            raise EngineError(f"ValueError: {refused.message}") from None
    return models


async def listen(runner: web.ServerRunner, settings: Settings) -> None:
    try:
        await web.TCPSite(runner, settings.host, settings.port, backlog=2048).start()
    except (OSError, OverflowError) as error:
        if isinstance(error, OSError) and error.errno == errno.EADDRINUSE:
            message = f"port {settings.port} on {settings.host} is in use"
            raise BadInput(message, cure="give another --port, or 0 for any free one") from None
        message = (
            f"cannot listen on {settings.host}:{settings.port}: {getattr(error, 'strerror', None) or error}"
        )
        raise BadInput(message, cure="give a --host and --port of this machine") from None
    port = runner.addresses[0][1]
    print(f"stub ready on {url_of(settings.host, port)}", flush=True)

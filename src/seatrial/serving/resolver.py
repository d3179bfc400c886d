"""Host names looked up in threads that may be left behind.

The event loop's own look-ups share a few threads and are waited for at the end: one name server that does not answer
would hold up every other endpoint and then the exit.
"""

import asyncio
import socket
import threading

from aiohttp.abc import AbstractResolver, ResolveResult


class AbandonableResolver(AbstractResolver):
    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[list[ResolveResult]] = loop.create_future()

        def settle(result: list[ResolveResult], error: OSError | None) -> None:
            if not answer.done():
                answer.set_exception(error) if error else answer.set_result(result)

        def look_up() -> None:
            result: list[ResolveResult] = []
            failure: OSError | None = None
            try:
                for found, _, protocol, _, address in socket.getaddrinfo(
                    host, port, family, socket.SOCK_STREAM
                ):
                    result.append(
                        ResolveResult(
                            hostname=host,
                            host=str(address[0]),
                            port=int(address[1]),
                            family=found,
                            proto=protocol,
                            flags=socket.AI_NUMERICHOST,
                        )
                    )
            except OSError as error:
                failure = error
            if not loop.is_closed():
                loop.call_soon_threadsafe(settle, result, failure)

        threading.Thread(target=look_up, daemon=True).start()
        return await answer

    async def close(self) -> None:
        """Nothing is held."""

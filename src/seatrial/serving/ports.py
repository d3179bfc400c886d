"""Whether a server may listen on a port, asked before minutes are spent on starting it."""

import errno
import socket

from seatrial.errors import BadInput


def require_free(host: str, ports: list[int]) -> None:
    for port in ports:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            # As servers do: a port whose last connections still linger is free.
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((host, port))
                probe.listen()
            except OSError as error:
                if error.errno == errno.EADDRINUSE:
                    raise BadInput(
                        f"port {port} on {host} is in use",
                        cure="choose another with --port, or stop what listens there",
                    ) from None
                raise BadInput(
                    f"cannot listen on {host}:{port}: {error.strerror}", cure="check host and port"
                ) from None


def free_port(host: str = "127.0.0.1") -> int:
    """A port that is free now."""
    with socket.socket() as probe:
        probe.bind((host, 0))
        port: int = probe.getsockname()[1]
        return port

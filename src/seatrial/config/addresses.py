"""Hosts and ports as they are written in URLs."""


def url_of(host: str, port: int) -> str:
    """The root of an HTTP server at this address, with an IPv6 address in brackets."""
    return f"http://{bracketed(host)}:{port}"


def bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def callable_host(host: str) -> str:
    """Where a server that listens on `host` can be called from this machine."""
    return {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}.get(host, host)  # noqa: S104

"""What to do about a failed step, by what its log says."""

import re

CAUSES = [
    (r"No space left on device|Disk quota exceeded", "free disk space (an engine takes 4 to 12 GB)"),
    (
        r"No matching distribution found for (?P<what>torch\S*\+cpu)",
        "let pip find PyTorch's CPU builds ({what}): add the index that pytorch.org names for CPU with "
        "`pip config set global.extra-index-url`",
    ),
    (
        r"No matching distribution found for (?P<what>\S+)",
        "pip finds no {what} where it looks (`pip config list`): check that index and the Python version",
    ),
    (
        r"Network is unreachable|Temporary failure in name resolution|Name or service not known|"
        r"Failed to establish a new connection|Connection refused|ProxyError",
        "connect to the network, or let pip's configuration name a mirror or proxy that can be reached",
    ),
    (
        r"[Rr]ead timed out|ReadTimeout|ConnectTimeout|Connection timed out|IncompleteRead|Connection reset",
        "the network was too slow: allow more time, PIP_DEFAULT_TIMEOUT=300",
    ),
    (
        r"No module named '?(pip|venv|ensurepip)|ensurepip is not available",
        "install Python's venv module (apt-get install python3-venv), and rebuild with --fresh",
    ),
    (r"CERTIFICATE_VERIFY_FAILED", "let PIP_CERT name the certificates that your network's proxy uses"),
    (r"externally-managed-environment", "rebuild from nothing with --fresh"),
]


def cure_for(log: str, name: str) -> str:
    """The cure for the first recognised cause, and in any case the command that continues."""
    for pattern, cure in CAUSES:
        if found := re.search(pattern, log):
            return f"{cure.format(**found.groupdict())}; then continue: seatrial setup {name}"
    return f"read the log, then continue: seatrial setup {name}"

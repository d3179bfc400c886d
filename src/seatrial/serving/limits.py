"""The limit on open files: each connection of each client is one, and the usual default is 1,024."""

import resource

COMFORTABLE = 65536
LOW = 16384
"""Below this, a few hundred agents with their tools can run out."""


def raise_open_files() -> int:
    """Raise this process's limit, which its children inherit, as far as it goes; returns what it is now.

    An ordinary user may go up to the hard limit; root may raise the hard limit too.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    for wanted in (max(hard, COMFORTABLE), hard):
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, max(wanted, hard)))
        except (ValueError, OSError):
            continue
        return wanted
    return soft


def open_files_warning(limit: int) -> str | None:
    if limit >= LOW:
        return None
    return (
        f"only {limit} files may be open at once: many clients at a time will fail with 'Too many open files'"
        f" (raise the hard limit: ulimit -Hn {COMFORTABLE} as root, or LimitNOFILE= in a systemd unit)"
    )

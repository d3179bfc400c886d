"""Environment variables that a child process gets: the user's, less the secrets it has no business with."""

import re
from collections.abc import Collection, Mapping

SECRET = re.compile(
    r"(^|_)(API_?KEY|ACCESS_?KEY(_ID)?|SECRET_?KEY|PRIVATE_?KEY|AUTH|TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE"
    r"|CREDENTIALS?|KEY)S?$",
    re.IGNORECASE,
)


def is_secret(name: str) -> bool:
    """Whether a variable of this name holds a key, a token or a password."""
    return bool(SECRET.search(name))


def without_secrets(environ: Mapping[str, str], keep: Collection[str] = ()) -> dict[str, str]:
    """`environ` without its secrets, apart from those that the child needs by name."""
    return {name: value for name, value in environ.items() if name in keep or not is_secret(name)}


def masked(environ: Mapping[str, str]) -> dict[str, str]:
    """`environ` for print and for run directories: the values of secrets hidden."""
    return {name: "***" if is_secret(name) else value for name, value in environ.items()}

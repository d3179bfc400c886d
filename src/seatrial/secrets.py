"""Which names hold keys, tokens and passwords, and how they are kept from children, logs and run directories."""

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

SECRET = re.compile(
    r"(^|_)((API_?KEY|ACCESS_?KEY(_ID)?|SECRET_?KEY|PRIVATE_?KEY|AUTH|SECRET|PASSWORD|PASSWD|PASSPHRASE"
    r"|CREDENTIAL|KEY)S?|TOKEN)$",
    re.IGNORECASE,
)
ASSIGNMENT = re.compile(r"^(-*[A-Za-z][\w-]*)=")
IN_URL = re.compile(r"(?<=://)[^/@\s]+:[^/@\s]+(?=@)")
"""The user and password in an address."""
HIDDEN = "***"


def is_secret(name: str) -> bool:
    """Whether a variable, a flag or a key of this name holds a secret."""
    return bool(SECRET.search(name.strip("-").replace("-", "_")))


def without_secrets(environ: Mapping[str, str], keep: Collection[str] = ()) -> dict[str, str]:
    """`environ` without its secrets, apart from those that the child needs by name.

    An address with a password in it is one too, unless it is a proxy's or an installer's index, of use to a child.
    """

    def may_pass(name: str, value: str) -> bool:
        useful = name.upper().endswith("PROXY") or name.startswith(("PIP_", "UV_"))
        return not is_secret(name) and (useful or not IN_URL.search(value))

    return {name: value for name, value in environ.items() if name in keep or may_pass(name, value)}


def masked(value: Any) -> Any:
    """A value for print and for run directories: whatever stands under a secret's name is hidden."""
    if isinstance(value, Mapping):
        return {
            key: HIDDEN if inner is not None and is_secret(str(key)) else masked(inner)
            for key, inner in value.items()
        }
    if isinstance(value, (list, tuple)):
        return [masked(inner) for inner in value]
    return _masked_word(value) if isinstance(value, str) else value


def masked_words(words: Sequence[str]) -> list[str]:
    """A command line with the values of its secret flags and assignments hidden."""
    shown: list[str] = []
    hide = False
    for word in words:
        shown.append(HIDDEN if hide else _masked_word(word))
        hide = word.startswith("--") and "=" not in word and is_secret(word)
    return shown


def _masked_word(word: str) -> str:
    assignment = ASSIGNMENT.match(word)
    if assignment and is_secret(assignment.group(1)):
        return assignment.group(0) + HIDDEN
    return IN_URL.sub(HIDDEN, word)

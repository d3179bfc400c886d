"""Adapters kept by content: a copy that stays as it was when the gate saw it.

An engine may read an adapter's files again long after loading it. If a trainer has written a newer one over them by
then, the engine would serve weights nobody checked under the old name. So a server on this machine is given a copy
under the digest of its content, which also keeps two versions apart in its prefix cache.
"""

import shutil
import tempfile
from pathlib import Path

from seatrial.files import home, sync_directory
from seatrial.serving.adapters.adapter import CONFIG, WEIGHTS, Adapter


def store() -> Path:
    return home() / "adapters"


def place_of(adapter: Adapter) -> Path:
    """Where the copy of `adapter` is or will be."""
    return store() / adapter.digest[:16]


def kept(adapter: Adapter) -> Path:
    """The stored copy of `adapter`, made now unless it is there."""
    folder, target = store(), place_of(adapter)
    folder.mkdir(parents=True, exist_ok=True)
    if not target.is_dir():
        draft = Path(tempfile.mkdtemp(dir=folder, prefix=".draft-"))
        try:
            for name in (CONFIG, WEIGHTS):
                shutil.copy2(adapter.directory / name, draft / name)
            draft.chmod(0o755)
            try:
                draft.rename(target)
            except OSError:
                if not target.is_dir():  # else another process was first with the same content
                    raise
        finally:
            shutil.rmtree(draft, ignore_errors=True)
        sync_directory(folder)
    return target

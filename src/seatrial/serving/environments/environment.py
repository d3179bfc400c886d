"""An isolated environment on disk, and how our own modules run inside it."""

import contextlib
import hashlib
from dataclasses import dataclass
from pathlib import Path

import seatrial
from seatrial import files
from seatrial.errors import MissingPart
from seatrial.serving.environments.record import Record

VLLM_PLUGIN = "seatrial.serving.vllm_plugin:register"
"""As pyproject.toml declares it, for an engine that runs in the interpreter we are installed in."""


@dataclass(frozen=True)
class Environment:
    name: str
    path: Path

    @classmethod
    def named(cls, name: str) -> "Environment":
        return cls(name, files.home() / "environments" / name)

    @property
    def python(self) -> Path:
        return self.path / "bin" / "python"

    @property
    def record_file(self) -> Path:
        return self.path / "steps.json"

    @property
    def logs(self) -> Path:
        return self.path / "logs"

    @property
    def lock_file(self) -> Path:
        """Beside the environment, so that it outlives a rebuild."""
        return self.path.with_name(f"{self.path.name}.lock")

    def is_ready(self) -> bool:
        """Whether a set-up once finished here and the interpreter is still there."""
        return self.python.exists() and Record.load(self.record_file).ready

    def require(self) -> "Environment":
        """This environment, or the error that says how to make it."""
        if not self.is_ready():
            raise MissingPart(
                f"the {self.name} environment is not set up ({self.path})", cure=f"seatrial setup {self.name}"
            )
        return self


def package_path() -> Path:
    """A directory that holds this very package and nothing else, to be put on another interpreter's path.

    Our own site-packages would bring along packages built for another Python. Beside the package lies the
    metadata that makes vLLM find our plugin in it.
    """
    package = Path(seatrial.__file__).resolve().parent
    key = hashlib.sha256(f"{package}\0{seatrial.__version__}".encode()).hexdigest()[:16]
    folder = files.home() / "package" / key
    link = folder / "seatrial"
    metadata = folder / f"seatrial-{seatrial.__version__}.dist-info"
    metadata.mkdir(parents=True, exist_ok=True)
    files.write_whole(
        metadata / "METADATA", f"Metadata-Version: 2.1\nName: seatrial\nVersion: {seatrial.__version__}\n"
    )
    files.write_whole(metadata / "entry_points.txt", f"[vllm.general_plugins]\nseatrial = {VLLM_PLUGIN}\n")
    # The folder's name says where the link points, so whoever made it first made the right one.
    with contextlib.suppress(FileExistsError):
        link.symlink_to(package, target_is_directory=True)
    return folder

"""A Docker engine for tests, and an image of the stand-in in it, made without any registry.

The engine that answers is used; where none does and we are root, one of our own is started, installed first if need
be. It has neither bridge nor iptables, so that it works inside other sandboxes: containers use the host's network.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

import seatrial
from seatrial.files import home
from seatrial.serving import keeper

ADMIN_PATH = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin"])
CONSTRAINTS = Path(__file__).parents[2] / "constraints.txt"
RELEASE, PYTHON = "bookworm", "3.11"
START_SECONDS = 60
STOP_SECONDS = 30


@dataclass(frozen=True)
class DockerEngine:
    host: str | None
    """What DOCKER_HOST must be; None when it is right as it is."""

    def __call__(self, *words: str) -> str:
        """The output of `docker` with these words."""
        more = {"DOCKER_HOST": self.host} if self.host else {}
        # The older builder is part of every engine; the newer one may not be installed.
        environment = os.environ | {"DOCKER_BUILDKIT": "0"} | more
        return subprocess.run(
            ["docker", *words], env=environment, capture_output=True, text=True, check=True, timeout=300
        ).stdout

    def answers(self) -> bool:
        try:
            self("version")
        except (OSError, subprocess.SubprocessError):
            return False
        return True

    def containers(self, name: str) -> list[str]:
        """The ids of the containers of exactly this name, running or not."""
        return self("ps", "--all", "--quiet", "--no-trunc", "--filter", f"name=^/{name}$").split()


@contextmanager
def docker_engine() -> Iterator[DockerEngine]:
    """One that answers, else our own while the block runs; the test is skipped where neither can be had."""
    found = DockerEngine(None)
    if not found.answers():
        if os.geteuid() != 0:
            pytest.skip("no Docker engine answers, and only root can start one")
        install("docker.io", "dockerd", "docker")
    if found.answers():
        yield found
        return
    with own_engine() as own:
        yield own


@contextmanager
def own_engine() -> Iterator[DockerEngine]:
    # A short path: that of a socket may not have more than 108 characters.
    folder = Path(tempfile.mkdtemp(prefix="seatrial-docker-"))
    host = f"unix://{folder}/socket"
    command = ["dockerd", "--iptables=false", "--ip6tables=false", "--bridge=none", "--host", host]
    command += [
        "--data-root",
        f"{folder}/data",
        "--exec-root",
        f"{folder}/exec",
        "--pidfile",
        f"{folder}/pid",
    ]
    log = folder / "log"
    with log.open("w") as output:
        # Under a keeper, the engine and all it started end with us, however we end.
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", keeper.__file__, str(STOP_SECONDS), "[]", *command],
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=output,
            env=os.environ | {"PATH": ADMIN_PATH},
            start_new_session=True,
        )
    engine = DockerEngine(host)
    try:
        deadline = time.monotonic() + START_SECONDS
        while not engine.answers():
            if process.poll() is not None or time.monotonic() > deadline:
                pytest.skip(f"dockerd does not start here: {log.read_text()[-500:]}")
            time.sleep(0.1)
        yield engine
    finally:
        process.terminate()
        process.wait(2 * STOP_SECONDS)
        for place in reversed(mounts_below(folder)):
            subprocess.run(["umount", "--lazy", place], check=False)
        shutil.rmtree(folder)


def mounts_below(folder: Path) -> list[str]:
    """Where something is mounted, in the order in which it was."""
    places = [line.split()[1] for line in Path("/proc/mounts").read_text().splitlines()]
    return [place for place in places if place.startswith(f"{folder}/")]


def install(package: str, *programs: str) -> None:
    """See that these programs are there, from `package` of the distribution if they are not."""
    if all(shutil.which(program, path=ADMIN_PATH) for program in programs):
        return
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        pytest.skip(f"{' and '.join(programs)} are not installed, and we cannot install {package}")
    # A service of the package is not for us to start: RUNLEVEL=1 says that none should be.
    environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive", "RUNLEVEL": "1"}
    apt = ["apt-get", "-qq", "-o", "DPkg::Lock::Timeout=300"]
    for words in (["update"], ["install", "--yes", "--no-install-recommends", package]):
        done = subprocess.run([*apt, *words], env=environment, capture_output=True, text=True, check=False)
    if not all(shutil.which(program, path=ADMIN_PATH) for program in programs):
        pytest.skip(f"apt-get could not install {package}: {done.stderr[-500:]}")


@contextmanager
def stub_image(docker: DockerEngine, folder: Path) -> Iterator[str]:
    """An image whose Python can run the stand-in, while the block runs; it is built in `folder`."""
    base, name = f"seatrial-test-base:{os.getpid()}", f"seatrial-test-stub:{os.getpid()}"
    docker("import", str(kept(f"{RELEASE}-python", make_base) / "base.tar"), base)
    pins = hashlib.sha256(CONSTRAINTS.read_bytes()).hexdigest()[:16]
    shutil.copytree(kept(f"aiohttp-{pins}", install_aiohttp), folder / "packages")
    package = Path(seatrial.__file__).parent
    shutil.copytree(package, folder / "packages" / "seatrial", ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "Dockerfile").write_text(
        f"FROM {base}\nCOPY packages /usr/local/lib/python{PYTHON}/dist-packages\n"
    )
    docker("build", "--tag", name, str(folder))
    try:
        yield name
    finally:
        docker("rmi", "--force", name, base)


def make_base(folder: Path) -> None:
    """`base.tar`: the smallest Debian with Python."""
    if os.geteuid() != 0:
        pytest.skip("only root can make a base image")
    install("debootstrap", "debootstrap")
    root = folder / "root"
    command = ["debootstrap", "--variant=minbase", "--include=python3", RELEASE, str(root)]
    done = subprocess.run(
        command, env=os.environ | {"PATH": ADMIN_PATH}, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        pytest.skip(f"debootstrap could not make a base image: {done.stdout[-500:]}")
    unneeded = ["./var/cache/apt", "./var/lib/apt/lists", "./usr/share/doc", "./usr/share/locale"]
    leave_out = [f"--exclude={path}/*" for path in unneeded]
    subprocess.run(
        ["tar", "--create", "--file", folder / "base.tar", "--directory", root, *leave_out, "."], check=True
    )
    shutil.rmtree(root)


def install_aiohttp(folder: Path) -> None:
    """What the stand-in needs, for the container's Python rather than for ours."""
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--target", str(folder)]
    command += [
        "--python-version",
        PYTHON,
        "--only-binary=:all:",
        "--constraint",
        str(CONSTRAINTS),
        "aiohttp",
    ]
    subprocess.run(command, check=True)


def kept(name: str, make: Callable[[Path], None]) -> Path:
    """A folder that `make` fills, once for all test runs."""
    target = home() / "docker-tests" / name
    if not target.is_dir():
        target.parent.mkdir(parents=True, exist_ok=True)
        draft = Path(tempfile.mkdtemp(dir=target.parent, prefix=".draft-"))
        try:
            make(draft)
            draft.rename(target)
        finally:
            shutil.rmtree(draft, ignore_errors=True)
    return target

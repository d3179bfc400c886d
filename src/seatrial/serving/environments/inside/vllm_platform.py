"""Runs inside an engine's environment: imports vLLM and makes sure it sees the wanted platform."""

import sys
from importlib.metadata import version

from vllm.platforms import current_platform

wanted = sys.argv[1]
found = current_platform.device_type
print(f"vllm {version('vllm')} on platform {found}")
if found != wanted:
    sys.exit(f"vLLM chose the platform {found!r}, wanted {wanted!r}")

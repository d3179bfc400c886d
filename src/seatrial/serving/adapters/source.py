"""Where an adapter comes from: a directory of this machine, or a hub id."""

from pathlib import Path

from seatrial.errors import BadInput


def is_hub_id(text: str) -> bool:
    """Whether it has the form org/name and no directory here is called so."""
    form = text.count("/") == 1 and not text.startswith((".", "/", "~"))
    return form and not Path(text).is_dir()


def adapter_directory(path_or_id: str) -> Path:
    """The directory of an adapter given as a path or a hub id; a hub id is fetched into the hub's cache."""
    path = Path(path_or_id).expanduser()
    if path.is_dir():
        return path.resolve()
    if not is_hub_id(path_or_id):
        raise BadInput(f"no such adapter directory: {path}", cure="check the path, or give a hub id org/name")
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError

    try:
        return Path(snapshot_download(path_or_id, allow_patterns=["adapter_*", "*.json"]))
    except (HfHubHTTPError, HFValidationError, LocalEntryNotFoundError, OSError) as error:
        raise BadInput(
            f"no adapter '{path_or_id}': no directory of that name, and the hub gave none ({type(error).__name__})",
            cure="check the path or the id, the network, and HF_TOKEN for a private one",
        ) from None

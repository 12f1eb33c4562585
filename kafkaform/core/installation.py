"""How this kafkaform was installed, and the command that adds an extra to it.

The right command depends on the way: pip of another environment, or a package of the same name from
an index, would install something that this command never sees.
"""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from urllib.parse import unquote, urlsplit

PACKAGE = "kafkaform"


def render_extra_command(extra: str) -> str:
    """The command that installs an extra of pyproject.toml beside this kafkaform, for messages."""
    prefix = Path(sys.prefix)
    origin, editable = _find_origin()
    target = shlex.quote(f"{origin or PACKAGE}[{extra}]")
    if "__pex__" in sys.modules:
        return f"pipx install {target}"
    if prefix.parent.name == "venvs" and (prefix / "pipx_metadata.json").exists():
        return f"pipx install --force {target}"
    if (prefix / "uv-receipt.toml").exists():
        return f"uv tool install --force {target}"
    flag = "-e " if editable else ""
    return f"{shlex.quote(sys.executable)} -m pip install {flag}{target}"


def _find_origin() -> tuple[str, bool]:
    """The folder or file that kafkaform was installed from, empty for an index, and whether it runs
    from that folder (PEP 610)."""
    from importlib.metadata import Distribution, PackageNotFoundError  # noqa: PLC0415  # slow, and only messages need it

    try:
        text = Distribution.from_name(PACKAGE).read_text("direct_url.json")
    except PackageNotFoundError:
        # A folder on the search path: that of the checkout.
        return str(Path(__file__).parents[2]), False
    if not text:
        return "", False
    record = json.loads(text)
    address = urlsplit(record["url"])
    origin = unquote(address.path) if address.scheme == "file" else record["url"]
    return origin, bool(record.get("dir_info", {}).get("editable"))

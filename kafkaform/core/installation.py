"""How this kafkaform was installed, and the command that adds an extra to it.

The right command depends on the way: pip of another environment, or a package of the same name from
an index, would install something that this command never sees.
"""

from __future__ import annotations

import contextlib
import json
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote, urlsplit

PACKAGE = "kafkaform"
EXTRAS = (
    *("sandbox", "fleet", "fleet-read", "fleet-small", "kerberos", "aws", "keystores", "codecs"),
    "lsp",
)
"""The extras of pyproject.toml that commands need."""


def render_extra_command(extra: str) -> str:
    """The command that installs an extra of pyproject.toml beside this kafkaform, for messages."""
    return render_install_command(f"[{extra}]")


def render_install_command(extras: str = "") -> str:
    """The command that installs this kafkaform again, with the packages that it needs."""
    prefix = Path(sys.prefix)
    origin, editable = _find_origin()
    target = shlex.quote(f"{origin or PACKAGE}{extras}")
    if "__pex__" in sys.modules:
        return f"pipx install {target}"
    if prefix.parent.name == "venvs" and (prefix / "pipx_metadata.json").exists():
        return f"pipx install --force {target}"
    if (prefix / "uv-receipt.toml").exists():
        return f"uv tool install --force {target}"
    flag = "-e " if editable else ""
    return f"{shlex.quote(sys.executable)} -m pip install {flag}{target}"


def list_unfit_packages() -> Iterator[str]:
    """The installed packages whose versions kafkaform does not work with, each with both versions;
    and those that it needs and that are missing."""
    from importlib.metadata import PackageNotFoundError, requires, version  # noqa: PLC0415  # slow, and only messages need it

    with contextlib.suppress(ImportError, PackageNotFoundError):
        from packaging.requirements import Requirement  # noqa: PLC0415  # it can be what is missing

        for requirement in map(Requirement, requires(PACKAGE) or ()):
            # Requirements of other systems, and of extras that no command uses, do not count.
            if requirement.marker is not None and not any(
                requirement.marker.evaluate({"extra": extra}) for extra in ("", *EXTRAS)
            ):
                continue
            needed = f"{requirement.name}{requirement.specifier}"
            try:
                installed = version(requirement.name)
            except PackageNotFoundError:
                if requirement.marker is None:
                    yield f"{requirement.name} is not installed, and kafkaform needs {needed}"
                continue
            if not requirement.specifier.contains(installed, prereleases=True):
                yield f"{requirement.name} {installed} is installed, and kafkaform needs {needed}"


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

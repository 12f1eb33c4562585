"""Make an environment that was installed before a provider existed find it."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafkaform.provider.registry import GROUP, list_entry_points


def offer_provider(name: str, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let this process find the provider, unless the installed package has it."""
    if note_provider(name, place):
        monkeypatch.syspath_prepend(place)


def note_provider(name: str, place: Path) -> bool:
    """Note the entry point in this folder, unless the installed package has it; True if it was
    noted. name: of the provider, whose package is `kafkaform_connect` for `kafka_connect`."""
    if name in {point.name for point in list_entry_points()}:
        return False
    module = f"kafkaform_{name.removeprefix('kafka_')}"
    noted = place / f"{module}-0.1.0.dist-info"
    noted.mkdir(parents=True)
    (noted / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module}\nVersion: 0.1.0\n")
    (noted / "entry_points.txt").write_text(f"[{GROUP}]\n{name} = {module}.provider:PROVIDER\n")
    return True

"""Make an environment that was installed before the provider existed find it."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafkaform.provider.registry import GROUP, list_entry_points

NAME = "schema_registry"


def offer_provider(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Note the entry point in this folder, unless the installed package has it."""
    if NAME in {point.name for point in list_entry_points()}:
        return
    noted = place / "kafkaform_schema_registry-0.1.0.dist-info"
    noted.mkdir(parents=True)
    (noted / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: kafkaform-schema-registry\nVersion: 0.1.0\n"
    )
    (noted / "entry_points.txt").write_text(
        f"[{GROUP}]\n{NAME} = kafkaform_schema_registry.provider:PROVIDER\n"
    )
    monkeypatch.syspath_prepend(place)

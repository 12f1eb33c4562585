"""Distinguish PEM text from the path of a PEM file."""

from __future__ import annotations

PEM_BEGIN = "-----BEGIN"


def is_pem(value: str | None) -> bool:
    """True if this is PEM text and not the path of a file."""
    return value is not None and value.lstrip().startswith(PEM_BEGIN)

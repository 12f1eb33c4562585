"""The measurements and the long runs can start: no other test imports them."""

from __future__ import annotations

import importlib
import pkgutil

import pytest

from . import bench, long

MODULES = sorted(
    module.name
    for package in (bench, long)
    for module in pkgutil.iter_modules(package.__path__, f"{package.__name__}.")
)


@pytest.mark.parametrize("name", MODULES)
def test_a_module_can_be_loaded(name: str) -> None:
    """What it uses of the product still exists."""
    importlib.import_module(name)

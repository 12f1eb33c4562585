"""`core.lazy`: what few commands need is loaded when it is first used."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

import pytest

from kafkaform.core.lazy import load

from ...kit.sources import PACKAGES, list_sources

LAZY = tuple(
    path.parent
    for path in list_sources()
    if path.name == "__init__.py" and "= load_on_use(__name__)" in path.read_text("utf-8")
)
"""The packages that load modules on first use."""


def name_package(folder: Path) -> str:
    base = PACKAGES[1] if folder.is_relative_to(PACKAGES[1]) else PACKAGES[0].parent
    return ".".join(folder.relative_to(base).parts)


@pytest.mark.parametrize("folder", LAZY, ids=name_package)
def test_a_package_has_the_modules_that_it_names(folder: Path) -> None:
    """A name that no module has would be found by its first user only."""
    package = import_module(name_package(folder))
    assert package.__all__
    for name in package.__all__:
        assert getattr(package, name).__name__ == f"{package.__name__}.{name}"


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A package with a sound module and one whose library is not installed."""
    folder = tmp_path / "lazy_example"
    folder.mkdir()
    (folder / "__init__.py").write_text(
        "from kafkaform.core.lazy import load_on_use\n__getattr__ = load_on_use(__name__)\n"
    )
    (folder / "sound.py").write_text("VALUE = 1\n")
    (folder / "lacking.py").write_text("import no_such_library\n")
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("", ".sound", ".lacking"):
        monkeypatch.delitem(sys.modules, f"lazy_example{name}", raising=False)
    return "lazy_example"


def test_a_module_is_loaded_at_its_first_use(package: str) -> None:
    """Not before, and a reference in a table finds the same module."""
    example = import_module(package)
    assert f"{package}.sound" not in sys.modules
    assert example.sound.VALUE == 1
    assert load(f"{package}.sound:VALUE") == 1


def test_a_missing_library_is_named(package: str) -> None:
    """Whoever asks for the module learns which library it lacks, and not that there is no such
    module."""
    with pytest.raises(ModuleNotFoundError) as error:
        import_module(package).lacking  # noqa: B018  # the access is what loads it
    assert error.value.name == "no_such_library"


def test_an_unknown_name_is_no_module(package: str) -> None:
    """`hasattr` and `from package import name` behave as they do for other packages."""
    example = import_module(package)
    assert not hasattr(example, "unknown")
    assert not hasattr(example, "__wrapped__")
    with pytest.raises(ImportError):
        from lazy_example import unknown  # type: ignore[import-not-found]  # noqa: F401

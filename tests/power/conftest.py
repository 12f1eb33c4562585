"""The folder on a real broker, in which commands are typed."""

from tests.cli.conftest import admin, folder

__all__ = ["admin", "folder"]

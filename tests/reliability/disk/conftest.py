"""The folder on a real broker, in which commands are typed."""

from ...kit.commands.fixtures import admin, folder

__all__ = ["admin", "folder"]

"""A folder connected to the shared broker, in which commands are typed."""

from ...kit.commands.bare import bare
from ...kit.commands.fixtures import admin, folder, here, planned

__all__ = ["admin", "bare", "folder", "here", "planned"]

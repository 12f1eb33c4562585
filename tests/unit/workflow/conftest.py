"""Folders in which commands are typed; a few tests here ask the shared broker too."""

from ...kit.commands.fixtures import admin, folder, here

__all__ = ["admin", "folder", "here"]

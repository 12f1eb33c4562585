"""Folders in which commands are typed."""

from ...kit.commands.fixtures import here

__all__ = ["here"]

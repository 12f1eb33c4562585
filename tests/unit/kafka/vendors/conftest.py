"""Fixtures of the tests of profiles."""

from ....kit.commands.fixtures import here

__all__ = ["here"]

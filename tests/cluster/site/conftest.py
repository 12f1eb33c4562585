"""Fixtures of the walks: a home without a configuration, and a sandbox for the pages that need one."""

from ...kit.sandbox_homes import home, module_home

__all__ = ["home", "module_home"]

"""A home folder for sandboxes, and a sandbox on paper."""

from ...kit.sandbox_homes import box, home, module_home

__all__ = ["box", "home", "module_home"]

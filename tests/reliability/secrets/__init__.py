"""Secrets that are easy to find again, in every command, however it ends."""

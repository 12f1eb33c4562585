"""Commands that answer from the audit log, and `undo`, which plans from it."""

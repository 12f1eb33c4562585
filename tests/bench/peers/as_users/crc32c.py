"""kafka-python loads this package where it is installed, which takes longer than what it saves.
Here it comes with kio, which only tests need, so a user's Python has none."""

raise ImportError("users do not have crc32c")

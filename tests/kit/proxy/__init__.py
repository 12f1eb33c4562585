"""A proxy before a real broker that reads every frame and breaks what it is told to break."""

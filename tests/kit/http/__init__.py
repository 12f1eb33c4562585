"""A real HTTP server, and a proxy before one that reads each message and breaks what it is told."""

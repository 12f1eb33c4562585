"""Connect workers for tests, and folders whose configuration names them."""

"""Where logs live: `local` for a file beside the state."""

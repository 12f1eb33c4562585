"""Where states live: `local` for a file beside the configuration."""

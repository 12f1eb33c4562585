"""One file a command: parse its flags, call the packages, print what comes back."""

"""In: a folder, and files of other tools. Out: configuration that takes their objects over."""

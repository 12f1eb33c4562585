"""In: live objects without a block. Out: the text of their blocks, for `import --all`."""

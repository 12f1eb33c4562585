"""A kafkaform provider for a small store of text files, to copy from.

docs/writing-a-provider.md explains every module: `server` is the system, `client` talks to it,
`file` and `link` are the resource types, `rules` judges their changes, `session` and `provider`
implement the contract.
"""

"""`python -m kafkaform`."""

from .cli.app import main

main()

"""Commands that providers offer: their flags for typer, their answers for the terminal."""

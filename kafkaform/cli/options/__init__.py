"""In: command lines, as users of Terraform and of Kafka's own tools type them, too; commands of
providers. Out: flags that several commands share, commands for typer. Must not know: what a command
does with them."""

"""In: typer's words. Out: the flags that several commands share, and command lines as users of
Terraform and of Kafka's own tools type them. Must not know: what a command does with them."""

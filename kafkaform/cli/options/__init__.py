"""In: command lines, as users of Terraform and of Kafka's own tools type them, too. Out: the flags
that several commands share. Must not know: what a command does with them."""

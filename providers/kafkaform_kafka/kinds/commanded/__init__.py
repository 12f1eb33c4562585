"""Kinds that only commands change, and no block declares: leaders of partitions, levels of features
and delegation tokens. A plan does not load their requests."""

"""The kinds of objects that the provider manages, one folder each; those that only commands change
share one (`commanded`).

To add a kind, write these modules and add the folder to `resource_kinds.py`:

- `resource_type`: the schema of a block, its canonical form, its rules, the steps of a change, and
  the `ResourceKind` value that joins all of it. Every command loads it;
- `requests`: lists objects and reads them by identity, and sends the steps of one request, once, or
  checks them in a dry run. Only a session loads it;
- `simulation`: the same for the simulated cluster. Only tests load it.

What a change can harm is in `rules/`. `context` is what every request needs, and `simulation.py`
here what every simulated one needs.

In: declared and observed attributes, steps, an open connection. Out: readings, listings with their
coverage, and one reply for each step. Must not know: plans, batches, state, other kinds' requests.
"""

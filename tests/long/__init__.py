"""The long form of the tests of durability: `make soak`."""

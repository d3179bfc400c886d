"""The engine without sockets and without a clock: blocks, sequences, steps. A simulator can run it as it is."""

"""The closed loop: baseline, train, gate, load, re-measure, decide."""

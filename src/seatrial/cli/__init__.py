"""One file a verb: parse, call, print."""

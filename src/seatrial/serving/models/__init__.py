"""Models that need no hub: `smollm2` from a package on PyPI, `tiny` made on the spot."""

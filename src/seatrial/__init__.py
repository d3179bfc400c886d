"""Seatrial: serve, route, benchmark, fine-tune and measure small language models as agents."""

__version__ = "0.1.0"

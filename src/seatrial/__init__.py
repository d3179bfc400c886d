"""Seatrial: small language models as agents, from serving them to measuring whether they got better."""

__version__ = "0.1.0"

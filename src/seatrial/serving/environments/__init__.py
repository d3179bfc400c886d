"""Isolated Python environments: one a part, because their dependencies do not go together."""

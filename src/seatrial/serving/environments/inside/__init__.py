"""Scripts that run inside an environment, by path, with that environment's interpreter."""

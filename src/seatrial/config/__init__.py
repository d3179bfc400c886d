"""pydantic models of the YAML and JSON files users write."""

"""An engine stand-in: vLLM's HTTP face around a pure model of continuous batching and prefix caching."""

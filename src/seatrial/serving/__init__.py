"""Engines and their environments, vLLM processes, replicas and endpoints, LoRA adapters."""

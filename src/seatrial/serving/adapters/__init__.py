"""LoRA adapters: their files, the gate they pass, and their life on a running server."""

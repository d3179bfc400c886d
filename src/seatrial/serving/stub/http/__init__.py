"""The face of vLLM: requests read and refused, answers shaped and streamed."""

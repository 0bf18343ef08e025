"""Samplers of training: in this process, with vLLM, and on servers."""

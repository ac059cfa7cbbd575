"""Trained Transformers from Hugging Face: reading, as cases, and layers computed by PyTorch."""

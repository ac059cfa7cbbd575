"""Laws of motion of growing size, fitted to the hidden states of a trained Transformer."""

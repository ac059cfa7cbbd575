"""Mean-field theory of Transformers: tokens as a probability density moved by self-attention."""

__version__ = "0.1.0"

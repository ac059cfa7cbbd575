"""Studies of trained Transformers on texts: parts left out, layers repeated, many prompts, and null models."""

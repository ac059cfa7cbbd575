"""Hidden states of a trained Transformer, moved by all of its layers or by some of their parts."""

"""Hidden states of a trained Transformer, transformed by all of its layers or by some of their parts."""

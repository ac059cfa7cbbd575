"""Recording of solutions into run files, and going on from them."""

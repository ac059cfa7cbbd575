"""Recording of solutions in run files, and restarts from them."""

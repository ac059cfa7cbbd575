"""Experiments on both networks, untrained and trained, over several seeds, with controls."""

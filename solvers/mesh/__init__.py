"""Meshes: cells, the faces between them and their geometry, on curves, surfaces, intervals and stacks of these."""

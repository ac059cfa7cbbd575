"""Meshes of curves, surfaces, intervals and stacks of these: cells, faces between cells, and their geometry."""

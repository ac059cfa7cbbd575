"""Meshes of triangles and of tetrahedra: median duals, one cell around each point."""

"""Transfer of mass between meshes and points: push-forward by a map, deposits of point masses."""

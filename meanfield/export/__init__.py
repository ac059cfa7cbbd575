"""Run files in other formats: CSV, netCDF on a regular grid, VTKHDF."""

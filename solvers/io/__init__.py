"""Run files in HDF5, laid out as netCDF-4: layout, writing, reading, checkpoints, repair after a kill."""

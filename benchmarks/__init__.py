"""Timings and accuracies of the package beside references: ``python -m benchmarks``. Not installed with the package."""

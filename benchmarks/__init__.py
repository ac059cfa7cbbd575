"""Side-by-side timings and accuracies of the package: ``python -m benchmarks``. Not installed with it."""

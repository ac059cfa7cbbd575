"""Branches of stationary densities over noise or β: equations, linear stability, continuation, and those of a case."""

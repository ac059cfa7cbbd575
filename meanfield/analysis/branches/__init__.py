"""Branches of stationary densities over noise or β: equations, linear stability, continuation, branches of a case."""

"""Runge–Kutta and exponential steps of a semi-discrete equation with error control."""

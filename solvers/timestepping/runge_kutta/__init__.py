"""Runge–Kutta and exponential steps of a semi-discrete equation, by the error of each."""

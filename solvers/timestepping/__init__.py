"""Time integration: steppers, schedules, observers, adaptive steps, and iterations to fixed points."""

"""The loop in time: steppers, schedules, observers, adaptive steps, and iterations to fixed points."""

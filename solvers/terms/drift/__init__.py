"""Drift and diffusion at once, in schemes that keep the steady density of both."""

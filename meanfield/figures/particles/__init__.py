"""Figures of tokens as particles: on the circle, on the sphere, projected from many dimensions."""

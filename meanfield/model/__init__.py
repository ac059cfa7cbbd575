"""Transformer layers as functions of arrays: attention, kernels, heads, layer norms, networks, reactions, linear
theory.
"""

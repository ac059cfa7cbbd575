"""The Transformer layer as functions of arrays: attention, kernels, heads, layer norms, networks, reactions, theory."""

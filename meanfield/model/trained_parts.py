"""Parts of a trained layer that can be left out, by name; see meanfield/model/trained_layer.py."""

PARTS = ("attention", "network", "biases", "gains", "residual", "layer_norm", "positions", "final_norm")

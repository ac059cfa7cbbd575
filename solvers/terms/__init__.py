"""Terms of an evolution equation: each adds its part of ∂ₜu, and reports its largest stable time step."""

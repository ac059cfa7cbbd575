"""Sums with the anisotropic kernel e^{⟨x,By⟩} of any matrix B."""

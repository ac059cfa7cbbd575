"""Sums with the kernel e^{⟨x,By⟩} of any matrix B, which depends on more than the angle of x and y."""

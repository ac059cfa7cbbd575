"""Equations as text, such as "dt(u) = laplace(u) + u - u**3": grammar, discrete operators, assembly of terms."""

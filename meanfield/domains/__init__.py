"""Kinds of domain, one folder each: the section of a case, equation, initial densities, diagnostics, set-up.

``table.py`` lists them; no code outside this folder compares their names.
"""

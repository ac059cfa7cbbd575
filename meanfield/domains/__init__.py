"""Kinds of domain, a folder each: the section of a case, equation, initial densities, diagnostics, set-up.

``table.py`` lists them; nothing outside this folder compares their names.
"""

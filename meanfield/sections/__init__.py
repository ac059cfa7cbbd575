"""Sections of a case file as frozen, typed records: every key with its type, range and default.

The file ``domains/*/section.py`` of each domain holds the keys of that domain. ``case/case.py`` joins all sections.
"""

"""Sections of a case file as frozen, typed records: every key with its type, range and default.

What depends on the kind of domain is in its own folder, ``domains/*/section.py``; ``case/case.py`` puts all together.
"""

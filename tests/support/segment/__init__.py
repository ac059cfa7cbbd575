"""Domain of tests/domains/test_new_domain.py: tokens on a segment between two walls."""

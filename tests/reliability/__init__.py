"""Harnesses of reliability: malformed cases, damaged files, faults of the machine; seeded, with a figure of merit."""

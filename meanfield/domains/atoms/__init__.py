"""Clusters as weighted point masses, exact over exponentially long times, and the handover from densities or tokens."""

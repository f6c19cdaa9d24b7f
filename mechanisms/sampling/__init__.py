"""Noise of exactly the declared distribution, rounded to a grid: what may be released."""

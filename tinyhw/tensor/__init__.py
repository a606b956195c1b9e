"""Tensor, the user's value, and Variable, a size that launches decide."""

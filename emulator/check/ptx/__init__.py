"""Checks of PTX: races, asynchronous copies and products, what nobody has written."""

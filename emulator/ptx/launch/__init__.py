"""Launches of PTX: grids, clusters, launches that overlap, and what a fault says of its place."""

"""Graphs: nodes and edges, made by hand or captured from streams."""

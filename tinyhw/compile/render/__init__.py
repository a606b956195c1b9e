"""Renderers: a linear program becomes source text, and source text becomes what a device loads. One module a target."""

"""Renderers: from a linear program to a target's text and binary, and what the target can do."""

"""Generators: vendor headers and tables in, autogen/ modules out."""

"""Modules of PTX before they run: linked, laid out, their functions in order."""

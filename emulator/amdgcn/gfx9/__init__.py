"""What only gfx9 (CDNA3) has: names and binders of its instructions, block ends, matrix layouts, sub-dword addressing.

Nothing of another generation; what several share stays one folder up.
"""

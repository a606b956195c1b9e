"""What only gfx11 (RDNA3) has: its matrix layouts.

Nothing of another generation; what several share stays one folder up.
"""

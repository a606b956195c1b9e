"""What only gfx12 (RDNA4) has: its meanings, binders of instructions and matrix layouts.

Nothing of another generation; what several share stays one folder up.
"""

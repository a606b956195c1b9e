"""Products of matrices: mma, wmma, wgmma and tcgen05, and how operands are spread or described."""

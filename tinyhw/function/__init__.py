"""What a Tensor can compute, a family of functions a module: each only builds UOps, none computes a value."""

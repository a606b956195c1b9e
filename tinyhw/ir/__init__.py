"""The compiler's language: dtypes, UOps, rewriting, symbolic arithmetic, shapes, the spec."""

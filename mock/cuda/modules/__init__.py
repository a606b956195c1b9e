"""Programs: modules, libraries, linkers and compilers."""

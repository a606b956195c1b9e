"""One file a GPU generation: a frozen Arch that names its tables and limits."""

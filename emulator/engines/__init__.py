"""What runs a launch: the reference interpreter, compiled code, both against each other, or whichever pays.

One module a vendor chooses (`amdgcn`, `ptx`); `both` compares; the rest says when compiled code takes over."""

"""AMD's side of the mock: the kernel driver (KFD, amdgpu's render nodes, topology) and the chip (command processor,
SDMA)."""

"""The kernel driver as its clients see it: KFD, amdgpu's render nodes, the topology in sysfs."""

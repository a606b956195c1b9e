"""A machine of AMD GPUs for programs in other processes: shared memory, sysfs and device nodes as amdgpu has them, and
the ioctls of /dev/kfd and render nodes by way of `mock.clients`."""

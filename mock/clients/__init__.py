"""Programs in other processes as clients of a mock machine: their system calls on device nodes and sysfs come here by
seccomp's user notification, of any vendor's devices. What a device answers is its vendor's (`mock.amd.hosted`)."""

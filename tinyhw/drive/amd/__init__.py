"""AMD GPUs through the Linux kernel's /dev/kfd: topology, memory, queues, code objects, faults. Knows no mock."""

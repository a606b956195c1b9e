"""AMD GPUs through ROCm's runtime (`libhsa-runtime64`), whose functions are handed in: agents and their memory, AQL
queues, code objects, copies. The library owns the kernel driver's files; this room writes packets and waits for
signals."""

"""A machine of mock GPUs behind the kernel driver's interface: ioctls, memory, command queues."""

if __name__ != "tinyhw.mock":
  raise ImportError(f"{__name__!r} is a folder of tinyhw: import it as tinyhw.mock")

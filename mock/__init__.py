"""A machine of mock GPUs behind the kernel driver's interface: ioctls, memory, command queues.

`running` (turns, clock, lock, record), `port` and `memory` are of any vendor. `amd` and `nv` have each a `driver`, the
kernel driver as its clients see it, and a `chip`, which reads the queues. `cuda` is a libcuda and a libcudart of this
process. `draws` and `injected` say what a run does on purpose: another order, a fault.
"""

if __name__ != "tinyhw.mock":
  raise ImportError(f"{__name__!r} is a folder of tinyhw: import it as tinyhw.mock")

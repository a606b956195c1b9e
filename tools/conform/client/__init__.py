"""Conformance of what clients of a kernel driver ask: packets of queues, methods of classes, ioctls and controls.

`question` says what a case is; `amd` and `nv` are rooms over the benches of bring-up, in which cases are asked; the
other modules have the cases of one unit each, with what must be in memory, or which errno, worked out from the declared
packets, the vendors' headers and the kernel driver's public source alone: `models` are small functions of their own.
Nothing here looks at the mock.
"""

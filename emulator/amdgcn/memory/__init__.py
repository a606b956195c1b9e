"""Instructions that reach memory: `bind` by family (`scalar`, `vector`, `lds`, `buffer`), from `tables` of names.

`image` binds those of images, which `texture` lays out.

`words` are between registers and memory, `gds` and `emulator.memory` do it, `formats` say what becomes of values.

No address arithmetic of queues or drivers: pages and faults are `core.memory`'s.
"""

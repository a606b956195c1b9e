"""Instructions that reach memory: `instructions` (scalar, FLAT, DS), `buffer`, `formats`, `atomics`; `access` does it.

No address arithmetic of queues or drivers: pages and faults are `core.memory`'s.
"""

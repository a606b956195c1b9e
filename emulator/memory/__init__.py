"""Accesses of many lanes to memory: which of them fault and how, and what atomics make of the old value.

No instructions: each vendor's `memory` brings addresses and masks here. Pages are `core.memory`'s.
"""

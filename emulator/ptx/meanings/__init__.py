"""What instructions compute: pure functions over `emulator.values.ops`, keyed by mnemonic, modifiers and type."""
from tinyhw.emulator.ptx.meanings import compare, convert, floats, integer
from tinyhw.emulator.ptx.meanings.registry import Meaning, find, registered

__all__ = ["Meaning", "compare", "convert", "find", "floats", "integer", "registered"]

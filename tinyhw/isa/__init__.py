"""Instruction encodings and their text, from generated tables. No meaning: that is the emulator's."""

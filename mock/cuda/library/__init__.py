"""The shared libraries that a process loads: ELF files whose functions lead here."""

"""Generated facts: encodings, packets, registers, structures. Written by tools/gen, never by hand."""
if __name__ != "tinyhw.autogen":
  raise ImportError(f"{__name__!r} is a folder of tinyhw: import it as tinyhw.autogen")

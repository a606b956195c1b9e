"""Generated facts: encodings, packets, registers, structures. Written by tools/gen, never by hand.

A correction by hand is a row in `errata/`, with what, was, now and evidence; the generator applies it.
"""
if __name__ != "tinyhw.autogen":
  raise ImportError(f"{__name__!r} is a folder of tinyhw: import it as tinyhw.autogen")

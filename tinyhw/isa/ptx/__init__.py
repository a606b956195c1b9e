"""PTX as text and as a model: `parse` reads a module, `text` writes it, `forms` says which instructions there are."""
from tinyhw.isa.ptx.model import Module
from tinyhw.isa.ptx.parser import PtxSyntaxError, parse
from tinyhw.isa.ptx.printer import text

__all__ = ["Module", "PtxSyntaxError", "parse", "text"]

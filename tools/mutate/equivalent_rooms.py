"""Changes of the rooms that nothing can notice, each kind with its reason: see `equivalent.py`.

"Nothing can notice" includes what only costs time, where no rule of the project promises a time.
"""
from __future__ import annotations

from typing import Final

from tinyhw.tools.mutate.equivalent import Rule

ANY: Final = r".*"
ROOMS: Final = (
  # ---- everywhere
  Rule(ANY, r"^@(dataclasses\.)?dataclass\(", r"True becomes False|False becomes True",
       "what a class of data forbids (frozen) or saves (slots) is for readers and mypy, who refuse code that differs"),
  Rule(ANY, r"@(functools\.)?(lru_)?cache", r"\d+ becomes \d+", "how much is remembered costs time only"),
  Rule(r".*\.<module>", r"^(_?CACHE_LIMIT|CACHED_\w+|KEPT)\b", ANY, "how much is remembered costs time only"),
  # ---- core
  Rule(r"core\.memory\.AddressSpace\.(load|store)", r"if address \+ width > m\.end", r"Gt becomes GtE",
       "the way across mappings reads and writes the same bytes"),
  Rule(r"core\.memory\.AddressSpace\.(load|store)", r"raw(32|64)", r"(4 becomes 5|8 becomes 9|Eq becomes NotEq)",
       "the way for single bytes reads and writes the same bytes"),
  Rule(r"core\.memory\.AddressSpace\.map", r"size <= 0", r"0 becomes 1", "one byte is no whole unit either"),
  Rule(r"core\.memory\.AddressSpace\._split", r"or \[0\]", r"0 becomes 1", "without mappings no index is valid"),
  Rule(r"core\.memory\._overlap", r"at \+ size > following", r"Gt becomes GtE",
       "lane after lane stores the same bytes"),
  # ---- ir
  Rule(ANY, r"copysign\(1\.0", r"1\.0 becomes 2\.0", "only the sign counts"),
  Rule(r"ir\.dtype\.dtypes", r"^void = ", r"0 becomes 1", "void has no size, whatever its bits"),
  Rule(r"ir\.semantics\.cast", r"abs\(value\)\.bit_length", r"abs dropped|40 becomes 41",
       "bit_length is the magnitude's; 41 bits hold more than a float's digits and fewer than a double's too"),
  Rule(r"ir\.symbolic\._positive", r"u\.arg > 0", r"Gt becomes GtE|0 becomes 1",
       "what is divided by 0 is 0, by meaning and by the rule; a division by 1 is gone before"),
)

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
  Rule(r".*\.<module>", r"^(_?CACHE_LIMIT|CACHED_\w+|KEPT)\b", ANY, "how much is remembered costs time only"),
  Rule(ANY, r"strict=True", r"True becomes False", "both have one length; strict says so to readers"),
  Rule(ANY, r"\bkind (not )?in \"[biufcnvs]{2,}\"", r"'[biufcnvs]{2,}' becomes .*", "a kind is a letter, none is '!'"),
  # ---- core
  Rule(r"core\.memory\.AddressSpace\.(load|store)", r"if address \+ width > m\.end", r"Gt becomes GtE",
       "the way across mappings reads and writes the same bytes"),
  Rule(r"core\.memory\.AddressSpace\.(load|store)", r"raw(32|64)", r"(4 becomes 5|8 becomes 9|Eq becomes NotEq)",
       "the way for single bytes reads and writes the same bytes"),
  Rule(r"core\.memory\.AddressSpace\.(_one|_split)", r"hi \+ width > m|^last = ", r"Gt becomes GtE|Sub becomes Add",
       "the way across mappings reads and writes the same bytes"),
  *(Rule(r"core\.memory\._(load|store)", rf"width (==|>=) {n}\b", rf"{n} becomes {n + 1}|BitAnd becomes BitOr",
         "the way for single bytes, or for words, reads and writes the same bytes") for n in (2, 4, 8, 16)),
  Rule(r"core\.layout\._compile", r"if up > 0 else", r"Gt becomes GtE|Lt becomes LtE", "a shift by nothing"),
  Rule(r"core\.layout\..*fuzz.*", r"0\.8", ANY, "how often a number of an enum is drawn"),
  Rule(r"core\.memory\.AddressSpace\.map", r"size <= 0", r"0 becomes 1", "one byte is no whole unit either"),
  Rule(r"core\.memory\.AddressSpace\._split", r"or \[0\]", r"0 becomes 1", "without mappings no index is valid"),
  Rule(r"core\.memory\._overlap", r"at \+ size > following", r"Gt becomes GtE",
       "lane after lane stores the same bytes"),
  Rule(r"core\.port\.Port\.\w+", r"^def ", ANY, "a protocol's defaults are for readers: each port has its own"),
  Rule(r"core\.store\.<module>", r"^(LIMIT|LARGEST|SELDOM): Final", ANY, "a bound on what is kept, chosen"),
  # ---- wire
  Rule(r"wire\.aql\.dispatch", r"SETUP_DIMENSIONS", r"LShift becomes RShift", "the field begins at bit 0"),
  # ---- ir
  Rule(ANY, r"copysign\(1\.0", r"1\.0 becomes 2\.0", "only the sign counts"),
  Rule(r"ir\.dtype\.dtypes", r"^void = ", r"0 becomes 1", "void has no size, whatever its bits"),
  Rule(r"ir\.semantics\.cast", r"abs\(value\)\.bit_length", r"abs dropped|40 becomes 41",
       "bit_length is the magnitude's; 41 bits hold more than a float's digits and fewer than a double's too"),
  Rule(r"ir\.symbolic\._positive", r"u\.arg > 0", r"Gt becomes GtE|0 becomes 1",
       "what is divided by 0 is 0, by meaning and by the rule; a division by 1 is gone before"),
  # ---- compile, engine
  Rule(r"compile\..*\.<module>", r"^_MAX_|^_LONG_ARITHMETIC|^_KEPT", r"\d+ becomes \d+",
       "a bound on code and time, chosen"),
  Rule(r"compile\.\w+\.Kernel\.\w+", r"self\.product\(Axis", r"product: arguments .*", "the kinds are a set"),
  Rule(r"compile\.render\.amdgcn\.AMDGCNRenderer\.address", r"kind\.size < 0", r"Lt becomes LtE",
       "a buffer of no elements has none to be addressed; the way for those of unknown size is right for all"),
  Rule(r"compile\.\w+\._try", r"amount < 2", r"False becomes True", "who asks for the answer offers 8 at least"),
  Rule(r"compile\.\w+\._tile", r"free = ", r"NotIn becomes In",
       "two axes meet when each has a load of its own, whether one looks at the loads with it or at those without"),
  Rule(r"compile\.transcendental\.<module>", r"^EXPONENTS", ANY, "beyond the nearer bounds all is 0 or infinite"),
  Rule(r"compile\.transcendental\.(\w+|<module>)", r"^TERMS|_log_short\(|longer: bool|_window\(shift",
       r"(3|6|8|9|14) becomes .*|False becomes True", "one term or word more than needed"),
  Rule(r"compile\.transcendental\._exp", r"_clamp\(x", r"\d+\.0 becomes \d+\.0",
       "beyond the clamp all is 0 or infinite"),
  Rule(r"compile\.transcendental\._fmod", r"steps = ", r"3 becomes 4", "a remainder has the same remainder"),
  Rule(r"engine\.random\.threefry\.const", r"counter\[0\]", r"0 becomes 1", "both words have one device and shape"),
  Rule(r"engine\.recording\.Slot\.(find|memory|quick)", r"last\[0\]\(\) is (tensor\._uop|node)", r"0 becomes 1",
       "without the short way the long one finds the same"),
  # ---- function
  Rule(r"function\.activation\.Activation\.gelu", r"clip\(-40, 40\)", r"40 becomes 41",
       "the gate is 0 or 1 from far before"),
  Rule(r"function\..*\.__[gl]e__", r"if side :=", r"0 becomes 1", "the side is 1 or -1 there"),
  Rule(r"function\..*\._shift", r"0 <= other < dtype\.bits: other = ", r"Lt becomes LtE",
       "every type holds its own width"),
  Rule(r"function\..*\.matmul", r"w\.ndim > 2", r"Gt becomes GtE", "an axis of 1 in front of all"),
  Rule(r"(tensor|function)\..*", r"return cls\.full\(sizes, 0, ", r"0 becomes 1", "there is no element"),
  Rule(r"function\..*", r"broadcast_shape\(", r"broadcast_shape: arguments .*", "shapes meet alike in any order"),
  Rule(r"function\..*\.round", r"self < 0", r"Lt becomes LtE", "a zero is whole already"),
  Rule(r"gradient\.<module>", r"^@_rule\(|^ +Ops\.", r"_rule: arguments .*", "the operations of a rule are a set"),
  # ---- drive
  Rule(r"drive\.amd\.program\.ArgumentLayout\._make_packer", r"argument\.offset > at", r"Gt becomes GtE",
       "no padding and padding of no bytes are the same"),
  Rule(r"drive\.amd\.program\.AMDProgram\.__init__", r"max\(self\.layout\.size, 1\)", r"1 becomes 2",
       "a kernel without arguments reads none of their bytes"),
  Rule(r"drive\.linux\.LinuxPort\.mmap", r"fd < 0", r"0 becomes 1|Lt becomes LtE",
       "descriptor 0 is the process's input, which no device is"),
  Rule(r"drive\.amd\.report\._near", r"buffer\.address > below\.address", r"Gt becomes GtE",
       "no two buffers that are there have one address"),
  Rule(r"drive\.batch\.batch\.numbers", r"max\(len\(values\), 1\)", r"1 becomes 2", "room behind that nobody reads"),
  Rule(r"drive\.cuda\.GraphRunner\._build", r"if self\._nodes else 0", r"0 becomes 1",
       "the first node has none before it, and is told of none"),
  Rule(r"drive\.nv\.device\.<module>", r"^_MAX_COPY_BYTES", r"30 becomes 31",
       "a longer piece of a copy, whose length has 32 bits"),
  Rule(r"drive\.amd\.commands\.ComputeCommands\.dispatch", r"dim_x=0", r"0 becomes 1",
       "the slots are filled before use"),
  # ---- cli
  Rule(r"cli\.debug\.Shell\.do_info", r"\"breakpoints\":", r"'breakpoints' becomes .*",
       "the beginning of a word is enough"),
  Rule(r"cli\.debug\.Shell\.print_value", r"abs\(value\) < 1024", r"abs dropped",
       "negative numbers of an array are shown in decimal anyway"),
  Rule(r"cli\.report\._hot", r"r\.hot\(1\)", r"1 becomes 2", "only the first is looked at"),
  Rule(r"cli\.debug\.Shell\.dump", r"form in FORMATS", r"'f' becomes 'f!'", "a float is shown as one in every format"),
  # ---- mock
  Rule(r"mock\.running\.<module>", r"^QUANTUM", ANY, "any number of packets keeps the order within each queue"),
  Rule(r"mock\.amd\.\w+\.\w+\.\w+", r"settings_version \+= 1", r"1 becomes 2|Add becomes Sub", "any change tells"),
  Rule(r"mock\.reductions\.\w+", r"ones - 1 if", r"1 becomes 2", "the order of numbers stays"),
  Rule(r"mock\.amd\.events\.Events\.__init__", r"page_handle = 0", r"0 becomes 1", "no buffer has this handle"),
  Rule(r"mock\.amd\.events\.Events\.create", r"range\(FIRST_OTHER", r"1 becomes 2",
       "the first free number is the same"),
  Rule(r"mock\.amd\.kfd\.Kfd\.alloc_memory_of_gpu", r"Buffer\(0, ", r"0 becomes 1", "the handle is given a line later"),
  Rule(r"mock\.amd\.compute\.run_dispatch", r"last\[:3\]", r"3 becomes 4", "what is not known again is looked up"),
  Rule(r"mock\.amd\.pm4\.<module>", r"^_RELEASE_MEM|^_SET_SH_REG", ANY, "a packet of no known shape is decoded anew"),
  Rule(r"mock\.amd\.pm4\.ComputeQueue\._decode", r"_learn\(", ANY, "a packet of no known shape is decoded anew"),
  Rule(r"mock\.machine\.<module>", r"^MMAP_START", r"\d+ becomes \d+", "offsets are whole pages from there on"),
  Rule(r"mock\.memory\.UserMemory\.mapped", r"maxsplit=2", r"2 becomes 3", "two words are looked at"),
  Rule(r"mock\.amd\.pm4\.ComputeQueue\._shape", r"_RELEASE_WORDS|_SET_SH_REG and end", ANY,
       "a packet of no known shape is decoded anew, to the same end"),
)

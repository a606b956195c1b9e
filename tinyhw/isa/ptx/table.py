"""The instructions of PTX as rows: which modifiers go together, in which order, and the types of operands.

A row is `opcodes slots ; results : sources ; version target`. A slot is a choice of modifiers (`lo|hi`), optional with
`?`; `$name` stands for a set below. Operands, a word each: `t` and `u`, the last and the first type of the instruction;
`w`, twice as wide as `t`; `p`, a predicate; `p|p`, one or two; `q`, a predicate that may be negated; `i`, a constant;
`@`, an address in the state space of the modifiers; `*` in front, an operand that may be left out; `T`, a
tensor map with coordinates; `M`, a matrix: a descriptor, or an address in tensor memory; `X`, a texture or surface
with coordinates; `c`, a level of detail; `v`, a vector; `y`, a state or a parity; `_`, a result that is not given; or
a type.
`version` is the PTX that has it, `target` the first sm: `100a`, of those with a letter alone; `<120`, of those before
another. Facts: the PTX ISA manual, section 9.7; `tests/isa` holds the
rows against ptxas, which accepts what they allow and refuses their neighbours.
"""
from __future__ import annotations

from typing import Final

SETS: Final = {
  "int": "u16|u32|u64|s16|s32|s64",
  "ints": "u32|u64|s32|s64",
  "bits": "b16|b32|b64",
  "all": "b16|b32|b64|u16|u32|u64|s16|s32|s64|f32|f64",
  "memory": "b8|b16|b32|b64|u8|u16|u32|u64|s8|s16|s32|s64|f32|f64",
  "round": "rn|rz|rm|rp",
  "compare": "eq|ne|lt|le|gt|ge",
  "unsigned": "lo|ls|hi|hs",
  "floats": "eq|ne|lt|le|gt|ge|equ|neu|ltu|leu|gtu|geu|num|nan",
  "space": "const|global|local|param|param::entry|param::func|shared|shared::cta|shared::cluster",
  "stores": "global|local|param|param::func|shared|shared::cta|shared::cluster",
  "scope": "cta|cluster|gpu|sys",
  "evict": "L1::evict_normal|L1::evict_unchanged|L1::evict_first|L1::evict_last|L1::no_allocate",
  "evict2": "L2::evict_last|L2::evict_normal|L2::evict_first",
  "fetch": "L2::64B|L2::128B|L2::256B",
  "hint": "L2::cache_hint",
  "sem": "relaxed|acquire|release|acq_rel",
  "shared": "global|shared|shared::cta|shared::cluster",
  "wide": "b8|b16|b32|b64|u8|u16|u32|u64|s8|s16|s32|s64|f32|f64|b128",
}

SETS["msem"] = "relaxed.cta|relaxed.cluster"
SETS["mspace"] = "shared|shared::cta|shared::cluster"
SETS["mrelease"] = "release.cta|release.cluster|relaxed.cta|relaxed.cluster"
SETS["macquire"] = "acquire.cta|acquire.cluster|relaxed.cta|relaxed.cluster"
SETS["dims"] = "1d|2d|3d|4d|5d"
SETS["dims3"] = "3d|4d|5d"
SETS["sp"] = "sp|sp::ordered_metadata"
SETS["thin"] = "sp::ordered_metadata"
SETS["wm"] = "m16n16k16|m8n32k16|m32n8k16"
SETS["ss"] = "global|shared|shared::cta"
SETS["policy"] = "L2::evict_last|L2::evict_normal|L2::evict_first|L2::evict_unchanged"
SETS["second"] = "L2::evict_first|L2::evict_unchanged"
SETS["reduced"] = "add|min|max|inc|dec|and|or|xor"
SETS["flat"] = "1d|2d|3d|a1d|a2d"
SETS["texels"] = "u32|s32|f16|f32"
SETS["queries"] = ("width|height|depth|channel_data_type|channel_order|normalized_coords|array_size|num_mipmap_levels"
                   "|num_samples|filter_mode|addr_mode_0|addr_mode_1|addr_mode_2|force_unnormalized_coords")
SETS["bulk"] = "mbarrier::complete_tx::bytes"

SETS["wgmma256"] = "|".join(f"m64n{n}k256" for n in range(8, 257, 8))
for _k in (8, 16, 32, 64): SETS[f"wgmma{_k}"] = "|".join(f"m64n{n}k{_k}" for n in range(8, 257, 8))

SETS["f8f6f4"] = "e4m3|e5m2|e3m2|e2m3|e2m1"
SETS["mx8"], SETS["mx4"], SETS["nv4"] = "kind::mxf8f6f4", "kind::mxf4", "kind::mxf4nvf4"
SETS["one"], SETS["half"], SETS["four"] = (f"scale_vec::{n}X" for n in (1, 2, 4))
SETS["two"] = "scale_vec::2X|scale_vec::4X"
SETS["mc"] = "multicast::cluster"
SETS["axes"] = "|".join(f"get_first_ctaid::{axis}" for axis in "xyz")
SETS["scales"] = "scale_vec::2X|scale_vec::4X|block16|block32"
SETS["ctas"] = "cta_group::1|cta_group::2"
SETS["tx64"] = "x1|x2|x4|x8|x16|x32|x64"
SETS["tx128"] = SETS["tx64"] + "|x128"
SETS["tx_red"] = SETS["tx128"].removeprefix("x1|")
SETS["tx32"] = SETS["tx64"].removesuffix("|x64")
SETS["unpacked"] = "b8x16.b6x16_p32|b8x16.b4x16_p64"
SETS["keeps"] = "|".join(f"collector::a::{op}" for op in ("fill", "use", "lastuse", "discard"))
SETS["moved"] = "collector::a::lastuse|collector::a::discard"
SETS["keeps_b"] = "|".join(f"collector::b{k}::{op}" for k in range(4) for op in ("fill", "use", "lastuse", "discard"))

ROWS: Final = """
add,sub u16|u32|u64|s16|s64 ; t : t t
add,sub ?sat s32 ; t : t t
add u16x2|s16x2 ; t : t t ; 8.0 90
mul lo|hi $int ; t : t t
mul wide u16|u32|s16|s32 ; w : t t
mad lo|hi $int ; t : t t t
mad hi sat s32 ; t : t t t
mad wide u16|u32|s16|s32 ; w : t t w
mul24 lo|hi u32|s32 ; t : t t
mad24 lo|hi u32|s32 ; t : t t t
mad24 hi sat s32 ; t : t t t
sad $int ; t : t t t
div,rem $int ; t : t t
abs,neg s16|s32|s64 ; t : t
min,max u16|u32|u64|s16|s64 ; t : t t
min,max ?relu s32 ; t : t t
min,max u16x2 ; t : t t ; 8.0 90
min,max ?relu s16x2 ; t : t t ; 8.0 90
popc,clz b32|b64 ; u32 : t
bfind ?shiftamt $ints ; u32 : t
fns b32 ; b32 : b32 b32 s32 ; 6.0 30
brev b32|b64 ; t : t
bfe $ints ; t : t u32 u32
bfi b32|b64 ; t : t t u32 u32
szext clamp|wrap u32|s32 ; t : t u32 ; 7.6 70
bmsk clamp|wrap b32 ; b32 : u32 u32 ; 7.6 70
dp4a u32|s32 u32|s32 ; s32 : b32 b32 s32 ; 5.0 61
dp2a lo|hi u32|s32 u32|s32 ; s32 : b32 b32 s32 ; 5.0 61
add,sub cc u32|s32|u64|s64 ; t : t t
addc,subc ?cc u32|s32|u64|s64 ; t : t t
mad lo|hi cc u32|s32|u64|s64 ; t : t t t
madc lo|hi ?cc u32|s32|u64|s64 ; t : t t t

testp finite|infinite|number|notanumber|normal|subnormal f32|f64 ; p : t
copysign f32|f64 ; t : t t
add,sub,mul ?$round ?ftz ?sat f32 ; t : t t
add,sub,mul ?$round f64 ; t : t t
add,sub,mul ?$round ?ftz f32x2 ; t : t t ; 8.6 100
fma $round ?ftz ?sat f32 ; t : t t t
add,sub ?$round ?sat f32 f16|bf16 ; u : t u ; 8.6 100
fma $round ?sat f32 f16|bf16 ; u : t t u ; 8.6 100
fma $round f64 ; t : t t t
fma $round ?ftz f32x2 ; t : t t t ; 8.6 100
mad $round ?ftz ?sat f32 ; t : t t t
mad $round f64 ; t : t t t
div approx|full ?ftz f32 ; t : t t
div $round ?ftz f32 ; t : t t
div $round f64 ; t : t t
abs,neg ?ftz f32 ; t : t
abs,neg f64 ; t : t
min,max ?ftz ?NaN ?xorsign.abs f32 ; t : t t
min,max ?ftz ?NaN ?abs f32 ; t : t t t ; 8.8 100
min,max f64 ; t : t t
rcp,sqrt approx|rn|rz|rm|rp ?ftz f32 ; t : t
rcp,sqrt $round f64 ; t : t
rcp approx ftz f64 ; t : t
rsqrt approx ?ftz f32|f64 ; t : t
sin,cos,lg2,ex2 approx ?ftz f32 ; t : t
tanh approx f32 ; t : t ; 7.0 75

add,sub,mul ?rn ?ftz ?sat f16|f16x2 ; t : t t ; 4.2 53
add,sub,mul ?rn bf16|bf16x2 ; t : t t ; 7.8 90
fma rn ?ftz ?sat f16|f16x2 ; t : t t t ; 4.2 53
fma rn ?ftz relu f16|f16x2 ; t : t t t ; 7.0 80
fma rn ?relu bf16|bf16x2 ; t : t t t ; 7.0 80
fma rn oob ?relu f16|f16x2|bf16|bf16x2 ; t : t t t ; 8.1 90
abs,neg ?ftz f16|f16x2 ; t : t ; 6.0 53
abs,neg bf16|bf16x2 ; t : t ; 7.0 80
min,max ?ftz ?NaN ?xorsign.abs f16|f16x2 ; t : t t ; 7.0 80
min,max ?NaN ?xorsign.abs bf16|bf16x2 ; t : t t ; 7.0 80
tanh approx f16|f16x2 ; t : t ; 7.0 75
tanh approx bf16|bf16x2 ; t : t ; 7.8 90
ex2 approx f16|f16x2 ; t : t ; 7.0 75
ex2 approx ftz bf16|bf16x2 ; t : t ; 7.8 90

set eq|ne u32|s32|f32 $bits ; u : t t
set $compare u32|s32|f32 s16|s32|s64 ; u : t t
set $compare|$unsigned u32|s32|f32 u16|u32|u64 ; u : t t
set $floats ?ftz u32|s32|f32 f32 ; u : t t
set $floats u32|s32|f32 f64 ; u : t t
set eq|ne f16|bf16 $bits ; u : t t ; 4.2 53
set $compare f16|bf16 s16|s32|s64 ; u : t t ; 4.2 53
set $compare|$unsigned f16|bf16 u16|u32|u64 ; u : t t ; 4.2 53
set $floats ?ftz f16 f32 ; u : t t ; 4.2 53
set $floats bf16 f32 ; u : t t ; 7.8 90
set $floats f16|bf16 f64 ; u : t t ; 4.2 53
set $floats bf16 f16 ; u : t t ; 7.8 90
set $floats ?ftz u32|s32 f16x2 ; u : t t ; 4.2 53
set $floats u32|s32 bf16x2 ; u : t t ; 7.8 90
set eq|ne and|or|xor f16|bf16 $bits ; u : t t q ; 4.2 53
set $compare and|or|xor f16|bf16 s16|s32|s64 ; u : t t q ; 4.2 53
set $compare|$unsigned and|or|xor f16|bf16 u16|u32|u64 ; u : t t q ; 4.2 53
set $floats and|or|xor ?ftz f16 f32 ; u : t t q ; 4.2 53
set $floats and|or|xor bf16 f32 ; u : t t q ; 7.8 90
set $floats and|or|xor f16|bf16 f64 ; u : t t q ; 4.2 53
set $floats and|or|xor bf16 f16 ; u : t t q ; 7.8 90
set $floats and|or|xor ?ftz u32|s32|f16x2 f16x2 ; u : t t q ; 4.2 53
set $floats and|or|xor u32|s32|bf16x2 bf16x2 ; u : t t q ; 7.8 90
set $floats and|or|xor u16|s16|u32|s32|bf16 bf16 ; u : t t q ; 7.8 90
set $floats ?ftz u16|s16|u32|s32 f16 ; u : t t ; 4.2 53
set $floats ?ftz f16 f16 ; u : t t ; 4.2 53
set $floats u16|s16|u32|s32|bf16 bf16 ; u : t t ; 7.8 90
set $floats ?ftz f16x2 f16x2 ; u : t t ; 4.2 53
set $floats bf16x2 bf16x2 ; u : t t ; 7.8 90
set eq|ne and|or|xor u32|s32|f32 $bits ; u : t t q
set $compare and|or|xor u32|s32|f32 s16|s32|s64 ; u : t t q
set $compare|$unsigned and|or|xor u32|s32|f32 u16|u32|u64 ; u : t t q
set $floats and|or|xor ?ftz u32|s32|f32 f32 ; u : t t q
set $floats and|or|xor u32|s32|f32 f64 ; u : t t q
set $floats and|or|xor ?ftz u16|s16|u32|s32|f16 f16 ; u : t t q ; 4.2 53
setp eq|ne $bits ; p|p : t t
setp $compare s16|s32|s64 ; p|p : t t
setp $compare|$unsigned u16|u32|u64 ; p|p : t t
setp $floats ?ftz f32 ; p|p : t t
setp $floats f64 ; p|p : t t
setp $floats ?ftz f16 ; p|p : t t ; 4.2 53
setp $floats bf16 ; p|p : t t ; 7.8 90
setp $floats ?ftz f16x2 ; p|p : t t ; 4.2 53
setp $floats bf16x2 ; p|p : t t ; 7.8 90
setp eq|ne and|or|xor $bits ; p|p : t t q
setp $compare and|or|xor s16|s32|s64 ; p|p : t t q
setp $compare|$unsigned and|or|xor u16|u32|u64 ; p|p : t t q
setp $floats and|or|xor ?ftz f32 ; p|p : t t q
setp $floats and|or|xor f64 ; p|p : t t q
setp $floats and|or|xor ?ftz f16 ; p|p : t t q ; 4.2 53
setp $floats and|or|xor bf16 ; p|p : t t q ; 7.8 90
setp $floats and|or|xor ?ftz f16x2 ; p|p : t t q ; 4.2 53
setp $floats and|or|xor bf16x2 ; p|p : t t q ; 7.8 90
selp $all ; t : t t q
slct $all s32 ; u : u u t
slct ?ftz $all f32 ; u : u u t

and,or,xor pred|$bits ; t : t t
not pred|$bits ; t : t
cnot $bits ; t : t
lop3 b32 ; t : t t t i
lop3 and|or b32 ; t|p : t t t i q ; 8.2 70
shf l|r clamp|wrap b32 ; t : t t u32
shl $bits ; t : t u32
shr $bits|$int ; t : t u32
prmt b32 ?f4e|b4e|rc8|ecl|ecr|rc16 ; t : t t u32

vadd,vsub,vabsdiff,vmin,vmax u32|s32 u32|s32 u32|s32 ?sat ?add|min|max ; b32 : b32 b32 *b32 ; 2.0 20
vshl,vshr u32|s32 u32|s32 u32 ?sat clamp|wrap ?add|min|max ; b32 : b32 b32 *b32 ; 2.0 20
vmad u32|s32 u32|s32 u32|s32 ?sat ?shr7|shr15 ; b32 : b32 b32 b32 ; 2.0 20
vmad u32|s32 u32|s32 u32|s32 po ?sat ?shr7|shr15 ; b32 : b32 b32 b32 ; 2.0 20
vset u32|s32 u32|s32 $compare ?add|min|max ; b32 : b32 b32 *b32 ; 2.0 20
vadd2,vsub2,vavrg2,vabsdiff2,vmin2,vmax2 u32|s32 u32|s32 u32|s32 ?sat|add ; b32 : b32 b32 b32 ; 3.0 30
vadd4,vsub4,vavrg4,vabsdiff4,vmin4,vmax4 u32|s32 u32|s32 u32|s32 ?sat|add ; b32 : b32 b32 b32 ; 3.0 30
vset2,vset4 u32|s32 u32|s32 $compare ?add ; b32 : b32 b32 b32 ; 3.0 30

tex ?base $flat v4 $texels s32|f32 ; v : X *v *f32 ; 1.5 20
tex ?base cube|acube v4 $texels f32 ; v : X *f32 ; 3.0 20
tex ?base 2dms|a2dms v4 $texels s32 ; v : X *v ; 3.2 30
tex level $flat v4 $texels s32|f32 ; v : X c *v *f32 ; 3.1 20
tex level cube|acube v4 $texels f32 ; v : X c *f32 ; 3.1 20
tex grad $flat v4 $texels s32|f32 ; v : X v v *v *f32 ; 3.1 20
tex grad cube|acube v4 $texels f32 ; v : X v v *f32 ; 4.3 20
tex ?base $flat v2 f16x2 s32|f32 ; v : X *v *f32 ; 4.2 53
tex ?base cube|acube v2 f16x2 f32 ; v : X *f32 ; 4.2 53
tex ?base 2dms|a2dms v2 f16x2 s32 ; v : X *v ; 4.2 53
tex level $flat v2 f16x2 s32|f32 ; v : X c *v *f32 ; 4.2 53
tex level cube|acube v2 f16x2 f32 ; v : X c *f32 ; 4.2 53
tex grad $flat v2 f16x2 s32|f32 ; v : X v v *v *f32 ; 4.2 53
tex grad cube|acube v2 f16x2 f32 ; v : X v v *f32 ; 4.3 53
tld4 r|g|b|a 2d|a2d|cube|acube v4 u32|s32|f32 f32 ; v : X *v *f32 ; 4.3 30
txq $queries b32 ; b32 : @ ; 3.2 30
txq level width|height|depth b32 ; b32 : @ u32 ; 4.3 30
istypep texref|samplerref|surfref ; p : u64 ; 4.0 30
suld b 1d|2d|3d|a1d|a2d ?ca|cg|cs|cv ?v2|v4 b8|b16|b32|b64 trap|clamp|zero ; v : X ; 3.0 20
sust b 1d|2d|3d|a1d|a2d ?wb|cg|cs|wt ?v2|v4 b8|b16|b32|b64 trap|clamp|zero ; : X v ; 3.0 20
sust p 1d|2d|3d ?v2|v4 b32 trap|clamp|zero ; : X v ; 2.0 20
sured b add 1d|2d|3d u32|s32|u64 trap|clamp|zero ; : X t ; 2.0 20
sured b min|max 1d|2d|3d u32|s32 trap|clamp|zero ; : X t ; 2.0 20
sured b min|max 1d|2d|3d u64|s64 trap|clamp|zero ; : X t ; 8.1 50
sured b and|or 1d|2d|3d b32 trap|clamp|zero ; : X t ; 2.0 20
sured p add|and|or 1d|2d|3d b32 trap|clamp|zero ; : X t ; 2.0 20
sured p min|max 1d|2d|3d b32 trap|clamp|zero ; : X t ; 2.0 20
sured p min|max 1d|2d|3d b64 trap|clamp|zero ; : X t ; 8.1 50
suq width|height|depth|channel_data_type|channel_order|array_size|memory_layout b32 ; b32 : @ ; 4.2 20

mov pred|$all|b128 ; t : m
cvt $round f32|f64 u8|u16|u32|u64|s8|s16|s32|s64 ; u : t
cvt $round f16 u8|u16|u32|u64|s8|s16|s32|s64 ; u : t
cvt $round sat f16|f32|f64 u8|u16|u32|u64|s8|s16|s32|s64 ; u : t
cvt ?sat u8|u16|u32|u64|s8|s16|s32|s64 u8|u16|u32|u64|s8|s16|s32|s64 ; u : t
cvt rni|rzi|rmi|rpi ?ftz ?sat u8|u16|u32|u64|s8|s16|s32|s64 f32 ; u : t
cvt rni|rzi|rmi|rpi ?sat u8|u16|u32|u64|s8|s16|s32|s64 f16|f64 ; u : t
cvt rni|rzi|rmi|rpi u8|u16|u32|u64|s8|s16|s32|s64 bf16 ; u : t ; 7.8 90
cvt ?rni|rzi|rmi|rpi ?ftz ?sat f32 f32 ; u : t
cvt ?rni|rzi|rmi|rpi ?sat f64 f64 ; u : t
cvt ?rni|rzi|rmi|rpi ?sat f16 f16 ; u : t
cvt rni|rzi|rmi|rpi bf16 bf16 ; u : t ; 7.8 90
cvt $round ?ftz ?sat f32 f64 ; u : t
cvt $round ?sat f16 f64 ; u : t
cvt $round ?ftz ?sat f16 f32 ; u : t
cvt ?ftz ?sat f64 f32 ; u : t
cvt ?sat f64 f16 ; u : t
cvt ?ftz ?sat f32 f16 ; u : t
cvt rn|rz satfinite f16 f32 ; u : t ; 7.0 75
cvt rn|rz ?relu ?satfinite f16|bf16 f32 ; u : t ; 7.0 80
cvt rm|rp ?ftz bf16 f32 ; u : t ; 7.0 80
cvt rn|rz ftz bf16 f32 ; u : t ; 7.0 80
cvt rn|rz ?relu ?satfinite f16x2|bf16x2 f32 ; u : t t ; 7.0 80
cvt ?ftz f32 bf16 ; u : t ; 7.1 80
cvt f64 bf16 ; u : t ; 7.8 90
cvt $round bf16 u8|u16|u32|u64|s8|s16|s32|s64|f64 ; u : t ; 7.8 90
cvt ?$round bf16 f16 ; u : t ; 7.8 90
cvt ?$round f16 bf16 ; u : t ; 7.8 90
cvt rna ?satfinite tf32 f32 ; b32 : t ; 7.0 80
cvt rn|rz ?relu tf32 f32 ; b32 : t ; 7.8 90
cvt rn satfinite ?relu e4m3x2|e5m2x2 f32 ; b16 : t t ; 8.1 89
cvt rn satfinite ?relu e4m3x2|e5m2x2 f16x2 ; b16 : t ; 8.1 89
cvt rn ?relu f16x2 e4m3x2|e5m2x2 ; u : b16 ; 8.1 89
cvt rn satfinite ?relu e2m1x2 f32 ; b8 : t t ; 8.6 100a
cvt rn satfinite ?relu e2m3x2|e3m2x2 f32 ; b16 : t t ; 8.6 100a
cvt rn ?relu f16x2 e2m1x2 ; u : b8 ; 8.6 100a
cvt rn bf16x2 e2m1x2 ; u : b8 ; 9.4 100a
cvt rn ?relu f16x2 e2m3x2|e3m2x2 ; u : b16 ; 8.6 100a
cvt rz|rp ?satfinite ue8m0x2 f32 ; b16 : t t ; 8.6 100a
cvt rz|rp ?satfinite ue8m0x2 bf16x2 ; b16 : t ; 8.6 100a
cvt rn bf16x2 ue8m0x2 ; u : b16 ; 8.6 100a
cvt rs ?relu ?satfinite f16x2|bf16x2 f32 ; u : t t b32 ; 8.7 100a<110
cvt rs ?relu satfinite e4m3x4|e5m2x4|e2m3x4|e3m2x4 f32 ; b32 : v b32 ; 8.7 100a<110
cvt rs ?relu satfinite e2m1x4 f32 ; b16 : v b32 ; 8.7 100a<110
cvt rn satfinite ?relu e4m3x2|e5m2x2 bf16x2 ; b16 : t ; 9.1 100a
cvt rn satfinite ?relu e2m3x2|e3m2x2 f16x2|bf16x2 ; b16 : t ; 9.1 100a
cvt rn satfinite ?relu e2m1x2 f16x2|bf16x2 ; b8 : t ; 9.1 100a
cvt rn satfinite ?relu s2f6x2 f32 ; b16 : t t ; 9.1 100a
cvt rn satfinite ?relu scaled::n2::ue8m0 s2f6x2 f32 ; b16 : t t b16 ; 9.1 100a
cvt rn satfinite ?relu s2f6x2 bf16x2 ; b16 : t ; 9.1 100a
cvt rn satfinite ?relu scaled::n2::ue8m0 s2f6x2 bf16x2 ; b16 : t b16 ; 9.1 100a
cvt rn ?satfinite ?relu bf16x2 s2f6x2 ; u : b16 ; 9.1 100a
cvt rn ?satfinite ?relu scaled::n2::ue8m0 bf16x2 s2f6x2 ; u : b16 b16 ; 9.1 100a
cvt pack sat s16|u16 s32 ; b32 : s32 s32 ; 6.5 72
cvt pack sat s8|u8|s4|u4|s2|u2 s32 b32 ; b32 : s32 s32 b32 ; 6.5 72

ld ?weak ?$space ?ca|cg|cs|lu|cv ?$evict ?$evict2 ?$fetch ?$hint ?v2|v4|v8 $wide ; t : @
ld volatile ?$shared ?$fetch ?v2|v4 $wide ; t : @
ld relaxed|acquire $scope ?$shared ?$evict ?$evict2 ?$fetch ?$hint ?v2|v4|v8 $wide ; t : @ ; 6.0 70
ld mmio relaxed sys ?global $memory ; t : @ ; 8.2 70
ld mmio relaxed sys ?global b128 ; t : @ ; 8.4 70
ld global ?ca|cg|cs nc ?$evict ?$evict2 ?$fetch ?$hint ?v2|v4|v8 $wide ; t : @
ld ?weak global nc ?$evict ?$evict2 ?$fetch ?$hint ?v2|v4|v8 $wide ; t : @
ldu ?global ?v2 $memory|b128 ; t : @
ldu ?global v4 b8|b16|b32|u8|u16|u32|s8|s16|s32|f32 ; t : @
st ?weak ?$stores ?wb|cg|cs|wt ?$evict ?$evict2 ?$hint ?v2|v4|v8 $wide ; : @ t
st volatile ?$shared ?v2|v4 $wide ; : @ t
st relaxed|release $scope ?$shared ?$evict ?$evict2 ?$hint ?v2|v4|v8 $wide ; : @ t ; 6.0 70
st mmio relaxed sys ?global $memory|b128 ; : @ t ; 8.2 70
prefetch ?global|local L1|L2 ; : @
prefetch global L2::evict_last|L2::evict_normal ; : @ ; 7.4 80
prefetch ?const|param tensormap ; : @ ; 8.0 90
prefetchu L1 ; : @
cvta ?to const|global|local|shared|param|shared::cta|shared::cluster u64 ; t : t
mapa ?shared::cluster u32|u64 ; t : t u32 ; 7.8 90
getctarank ?shared::cluster u32|u64 ; u32 : t ; 7.8 90
isspacep const|global|local|shared|shared::cta|shared::cluster|param ; p : u64
atom ?$sem ?$scope ?$shared and|or|xor b32|b64 ; t : @ t
atom ?$sem ?$scope ?$shared exch b32|b64|b128 ; t : @ t
atom ?$sem ?$scope ?$shared cas b16|b32|b64|b128 ; t : @ t t
atom ?$sem ?$scope ?$shared add u32|s32|u64|f32|f64 ; t : @ t
atom ?$sem ?$scope ?$shared inc|dec u32 ; t : @ t
atom ?$sem ?$scope ?$shared min|max u32|s32|u64|s64 ; t : @ t
atom ?$sem ?$scope ?$shared add noftz f16|f16x2|bf16|bf16x2 ; t : @ t ; 6.3 70
atom ?$sem ?$scope ?global add ?$hint v2|v4 f32 ; t : @ t ; 8.1 90
atom ?$sem ?$scope ?global add|min|max noftz ?$hint v2|v4|v8 f16|bf16 ; t : @ t ; 8.1 90
atom ?$sem ?$scope ?global add|min|max noftz ?$hint v2|v4 f16x2|bf16x2 ; t : @ t ; 8.1 90
red ?relaxed|release ?$scope ?global add ?$hint v2|v4 f32 ; : @ t ; 8.1 90
red ?relaxed|release ?$scope ?global add|min|max noftz ?$hint v2|v4|v8 f16|bf16 ; : @ t ; 8.1 90
red ?relaxed|release ?$scope ?global add|min|max noftz ?$hint v2|v4 f16x2|bf16x2 ; : @ t ; 8.1 90
red ?relaxed|release ?$scope ?$shared and|or|xor b32|b64 ; : @ t
red ?relaxed|release ?$scope ?$shared add u32|s32|u64|f32|f64 ; : @ t
red ?relaxed|release ?$scope ?$shared inc|dec u32 ; : @ t
red ?relaxed|release ?$scope ?$shared min|max u32|s32|u64|s64 ; : @ t
red ?relaxed|release ?$scope ?$shared add noftz f16|f16x2|bf16|bf16x2 ; : @ t ; 6.3 70

bra ?uni ; : l
brx idx ?uni ; : u32 l
call ?uni ; : c
ret ?uni ; :
exit ; :
trap,brkpt ; :
bar ?cta sync ; : i *u32
bar ?cta arrive ; : i u32
bar ?cta red popc u32 ; u32 : i *u32 q
bar ?cta red and|or pred ; p : i *u32 q
barrier ?cta sync ?aligned ; : i *u32 ; 6.0 30
barrier ?cta arrive ?aligned ; : i u32 ; 6.0 30
barrier ?cta red popc ?aligned u32 ; u32 : i *u32 q ; 6.0 30
barrier ?cta red and|or ?aligned pred ; p : i *u32 q ; 6.0 30
bar warp sync ; : b32 ; 6.0 30
membar cta|gl|sys ; :
fence ?sc|acq_rel|acquire|release $scope ; : ; 6.0 70
fence proxy alias|async|async.global|async.shared::cta|async.shared::cluster ; : ; 7.5 70
fence mbarrier_init release cluster ; : ; 8.0 90
fence acquire sync_restrict::shared::cluster cluster ; : ; 8.6 90
fence release sync_restrict::shared::cta cluster ; : ; 8.6 90
fence proxy async::generic acquire sync_restrict::shared::cluster cluster ; : ; 8.6 90
fence proxy async::generic release sync_restrict::shared::cta cluster ; : ; 8.6 90
fence proxy tensormap::generic release $scope ; : ; 8.3 90
fence proxy tensormap::generic acquire $scope ; : @ i ; 8.3 90
membar proxy alias ; : ; 7.5 70
barrier cluster arrive ?release|relaxed ?aligned ; : ; 7.8 90
barrier cluster wait ?acquire ?aligned ; : ; 7.8 90
mbarrier init ?shared|shared::cta b64 ; : @ u32 ; 7.0 80
mbarrier inval ?shared|shared::cta b64 ; : @ ; 7.0 80
mbarrier expect_tx|complete_tx ?$msem ?$mspace b64 ; : @ u32 ; 8.0 90
mbarrier arrive|arrive_drop ?$mrelease ?shared|shared::cta b64 ; b64 : @ *u32 ; 7.0 80
mbarrier arrive|arrive_drop ?$mrelease shared::cluster b64 ; _ : @ *u32 ; 8.0 90
mbarrier arrive|arrive_drop expect_tx ?$mrelease ?shared|shared::cta b64 ; b64 : @ u32 ; 8.0 90
mbarrier arrive|arrive_drop expect_tx ?$mrelease shared::cluster b64 ; _ : @ u32 ; 8.0 90
mbarrier arrive|arrive_drop noComplete ?release.cta ?shared|shared::cta b64 ; b64 : @ u32 ; 7.0 80
mbarrier test_wait ?parity ?$macquire ?shared|shared::cta b64 ; p : @ y ; 7.0 80
mbarrier try_wait ?parity ?$macquire ?shared|shared::cta b64 ; p : @ y *u32 ; 7.8 90
mbarrier pending_count b64 ; u32 : b64 ; 7.0 80
vote sync all|any|uni pred ; p : q b32 ; 6.0 30
vote sync ballot b32 ; b32 : q b32 ; 6.0 30
vote all|any|uni pred ; p : q ; 1.2 12
vote ballot b32 ; b32 : q ; 2.0 20
match any sync b32|b64 ; b32 : t b32 ; 6.0 70
match all sync b32|b64 ; b32|p : t b32 ; 6.0 70
activemask b32 ; b32 : ; 6.2 30
redux sync add|min|max u32|s32 ; t : t b32 ; 7.0 80
redux sync and|or|xor b32 ; t : t b32 ; 7.0 80
redux sync min|max ?abs ?NaN f32 ; t : t b32 ; 8.6 100a<110
shfl sync up|down|bfly|idx b32 ; b32|p : b32 b32 b32 b32 ; 6.0 30
shfl up|down|bfly|idx b32 ; b32|p : b32 b32 b32
elect sync ; b32|p : b32 ; 8.0 90
nanosleep u32 ; : u32 ; 6.3 70
pmevent ?mask ; : i
discard ?global L2 ; : @ i ; 7.4 80
applypriority ?global L2::evict_normal ; : @ i ; 7.4 80
createpolicy range ?global $policy ?$second b64 ; b64 : @ u32 u32 ; 7.4 80
createpolicy cvt L2 b64 ; b64 : b64 ; 7.4 80
createpolicy fractional $policy ?$second b64 ; b64 : *f32 ; 7.4 80
griddepcontrol launch_dependents|wait ; : ; 7.8 90
setmaxnreg inc|dec sync aligned u32 ; : i ; 8.0 90a
stacksave u32|u64 ; t : ; 7.3 52
stackrestore u32|u64 ; : t ; 7.3 52
alloca u32|u64 ; t : t *i ; 7.3 52

ldmatrix sync aligned m8n8 x1|x2|x4 ?trans ?shared|shared::cta b16 ; v : @ ; 6.5 75
ldmatrix sync aligned m8n16 x1|x2|x4 ?shared|shared::cta $unpacked ; v : @ ; 8.6 100a
ldmatrix sync aligned m16n16 x1|x2 trans ?shared|shared::cta b8 ; v : @ ; 8.6 100a
ldmatrix sync aligned m16n16 x1|x2 trans ?shared|shared::cta $unpacked ; v : @ ; 8.6 100a
stmatrix sync aligned m16n8 x1|x2|x4 trans ?shared|shared::cta b8 ; : @ v ; 8.6 100a
stmatrix sync aligned m8n8 x1|x2|x4 ?trans ?shared|shared::cta b16 ; : @ v ; 7.8 90
movmatrix sync aligned m8n8 trans b16 ; b32 : b32 ; 7.8 75
mma sync aligned m8n8k4 row|col row|col f32 f16 f16 f32|f16 ; v : v v v ; 6.4 70
mma sync aligned m8n8k4 row|col row|col f16 f16 f16 f16 ; v : v v v ; 6.4 70
mma sync aligned m8n8k4 row col f64 f64 f64 f64 ; v : v v v ; 7.0 80
mma sync aligned m16n8k8 row col f32 f16 f16 f32 ; v : v v v ; 6.5 75
mma sync aligned m16n8k8 row col f16 f16 f16 f16 ; v : v v v ; 6.5 75
mma sync aligned m16n8k16 row col f32 f16 f16 f32 ; v : v v v ; 7.0 80
mma sync aligned m16n8k16 row col f16 f16 f16 f16 ; v : v v v ; 7.0 80
mma sync aligned m16n8k8|m16n8k16 row col f32 bf16 bf16 f32 ; v : v v v ; 7.0 80
mma sync aligned m16n8k4|m16n8k8 row col f32 tf32 tf32 f32 ; v : v v v ; 7.0 80
mma sync aligned m16n8k4|m16n8k8|m16n8k16 row col f64 f64 f64 f64 ; v : v v v ; 7.8 90
mma sync aligned m8n8k16|m16n8k16|m16n8k32 row col ?satfinite s32 u8|s8 u8|s8 s32 ; v : v v v ; 6.5 75
mma sync aligned m8n8k32|m16n8k32|m16n8k64 row col ?satfinite s32 u4|s4 u4|s4 s32 ; v : v v v ; 6.5 75
mma sync aligned m16n8k32|m16n8k16 row col f32 e4m3|e5m2 e4m3|e5m2 f32 ; v : v v v ; 8.4 89
mma sync aligned m16n8k32|m16n8k16 row col f16 e4m3|e5m2 e4m3|e5m2 f16 ; v : v v v ; 8.4 89
mma sync aligned m16n8k32 row col kind::f8f6f4 f32 $f8f6f4 $f8f6f4 f32 ; v : v v v ; 8.7 120a
mma sync aligned m16n8k32 row col kind::f8f6f4 f16 $f8f6f4 $f8f6f4 f16 ; v : v v v ; 8.7 120a
mma sync aligned m16n8k32 row col $mx8 block_scale ?$one f32 $f8f6f4 $f8f6f4 f32 ue8m0 ; \
  v : v v v b32 v b32 v ; 8.7 120a
mma sync aligned m16n8k64 row col $mx4 block_scale ?$half f32 e2m1 e2m1 f32 ue8m0 ; v : v v v b32 v b32 v ; 8.7 120a
mma sync aligned m16n8k64 row col $nv4 block_scale $two f32 e2m1 e2m1 f32 ue8m0 ; v : v v v b32 v b32 v ; 8.7 120a
mma sync aligned m16n8k64 row col $nv4 block_scale $four f32 e2m1 e2m1 f32 ue4m3 ; v : v v v b32 v b32 v ; 8.7 120a
mma sync aligned m8n8k128|m16n8k128|m16n8k256 row col s32 b1 b1 s32 xor.popc|and.popc ; v : v v v ; 7.0 75
mma $sp sync aligned m16n8k16|m16n8k32 row col f32 f16 f16 f32 ; v : v v v b32 i ; 7.1 80
mma $sp sync aligned m16n8k16|m16n8k32 row col f16 f16 f16 f16 ; v : v v v b32 i ; 7.1 80
mma $sp sync aligned m16n8k16|m16n8k32 row col f32 bf16 bf16 f32 ; v : v v v b32 i ; 7.1 80
mma $sp sync aligned m16n8k8|m16n8k16 row col f32 tf32 tf32 f32 ; v : v v v b32 i ; 7.1 80
mma $sp sync aligned m16n8k32|m16n8k64 row col ?satfinite s32 u8|s8 u8|s8 s32 ; v : v v v b32 i ; 7.1 80
mma $sp sync aligned m16n8k64|m16n8k128 row col ?satfinite s32 u4|s4 u4|s4 s32 ; v : v v v b32 i ; 7.1 80
mma $sp sync aligned m16n8k64 row col f32 e4m3|e5m2 e4m3|e5m2 f32 ; v : v v v b32 i ; 8.4 89
mma $thin sync aligned m16n8k64 row col kind::f8f6f4 f32 $f8f6f4 $f8f6f4 f32 ; v : v v v b32 i ; 8.7 120a
mma $thin sync aligned m16n8k64 row col kind::f8f6f4 f16 $f8f6f4 $f8f6f4 f16 ; v : v v v b32 i ; 8.7 120a
mma $thin sync aligned m16n8k64 row col $mx8 block_scale ?$one f32 $f8f6f4 $f8f6f4 f32 ue8m0 ; \
  v : v v v b32 i b32 v b32 v ; 8.7 120a
mma $thin sync aligned m16n8k128 row col $mx4 block_scale ?$half f32 e2m1 e2m1 f32 ue8m0 ; \
  v : v v v b32 i b32 v b32 v ; 8.7 120a
mma $thin sync aligned m16n8k128 row col $nv4 block_scale $two f32 e2m1 e2m1 f32 ue8m0 ; \
  v : v v v b32 i b32 v b32 v ; 8.7 120a
mma $thin sync aligned m16n8k128 row col $nv4 block_scale $four f32 e2m1 e2m1 f32 ue4m3 ; \
  v : v v v b32 i b32 v b32 v ; 8.7 120a
wmma load a|b sync aligned row|col $wm ?$ss f16|bf16|u8|s8 ; v : @ *u32 ; 6.0 70
wmma load a|b sync aligned row|col m16n16k8 ?$ss tf32 ; v : @ *u32 ; 7.0 80
wmma load a|b sync aligned row|col m8n8k4 ?$ss f64 ; v : @ *u32 ; 7.0 80
wmma load a sync aligned row m8n8k32 ?$ss u4|s4 ; v : @ *u32 ; 6.3 75
wmma load b sync aligned col m8n8k32 ?$ss u4|s4 ; v : @ *u32 ; 6.3 75
wmma load a sync aligned row m8n8k128 ?$ss b1 ; v : @ *u32 ; 6.3 75
wmma load b sync aligned col m8n8k128 ?$ss b1 ; v : @ *u32 ; 6.3 75
wmma load c sync aligned row|col $wm ?$ss f16|f32|s32 ; v : @ *u32 ; 6.0 70
wmma load c sync aligned row|col m16n16k8 ?$ss f32 ; v : @ *u32 ; 7.0 80
wmma load c sync aligned row|col m8n8k4 ?$ss f64 ; v : @ *u32 ; 7.0 80
wmma load c sync aligned row|col m8n8k32|m8n8k128 ?$ss s32 ; v : @ *u32 ; 6.3 75
wmma store d sync aligned row|col $wm ?$ss f16|f32|s32 ; : @ v *u32 ; 6.0 70
wmma store d sync aligned row|col m16n16k8 ?$ss f32 ; : @ v *u32 ; 7.0 80
wmma store d sync aligned row|col m8n8k4 ?$ss f64 ; : @ v *u32 ; 7.0 80
wmma store d sync aligned row|col m8n8k32|m8n8k128 ?$ss s32 ; : @ v *u32 ; 6.3 75
wmma mma sync aligned row|col row|col $wm f16|f32 f16|f32 ; v : v v v ; 6.0 70
wmma mma sync aligned row|col row|col $wm f32 bf16 bf16 f32 ; v : v v v ; 7.0 80
wmma mma sync aligned row|col row|col m16n16k8 f32 tf32 tf32 f32 ; v : v v v ; 7.0 80
wmma mma sync aligned row|col row|col m8n8k4 ?$round f64 f64 f64 f64 ; v : v v v ; 7.0 80
wmma mma sync aligned row|col row|col $wm s32 u8 u8 s32 ?satfinite ; v : v v v ; 6.3 72
wmma mma sync aligned row|col row|col $wm s32 s8 s8 s32 ?satfinite ; v : v v v ; 6.3 72
wmma mma sync aligned row col m8n8k32 s32 u4 u4 s32 ?satfinite ; v : v v v ; 6.3 75
wmma mma sync aligned row col m8n8k32 s32 s4 s4 s32 ?satfinite ; v : v v v ; 6.3 75
wmma mma xor|and popc sync aligned row col m8n8k128 s32 b1 b1 s32 ; v : v v v ; 6.3 75
wgmma fence|commit_group sync aligned ; : ; 8.0 90a<100
wgmma wait_group sync aligned ; : i ; 8.0 90a<100
wgmma mma_async sync aligned $wgmma16 f16|f32 f16 f16 ; v : v v q ; 8.0 90a<100
wgmma mma_async sync aligned $wgmma16 f32 bf16 bf16 ; v : v v q ; 8.0 90a<100
wgmma mma_async sync aligned $wgmma8 f32 tf32 tf32 ; v : v v q ; 8.0 90a<100
wgmma mma_async sync aligned $wgmma32 f16|f32 e4m3|e5m2 e4m3|e5m2 ; v : v v q ; 8.0 90a<100
wgmma mma_async sync aligned $wgmma32 ?satfinite s32 s8|u8 s8|u8 ; v : v v q ; 8.0 90a<100
wgmma mma_async sync aligned $wgmma256 s32 b1 b1 and popc ; v : v v q ; 8.0 90a<100
wgmma mma_async sp sync aligned $wgmma32 f16|f32 f16 f16 ; v : v v b32 i q ; 8.2 90a<100
wgmma mma_async sp sync aligned $wgmma32 f32 bf16 bf16 ; v : v v b32 i q ; 8.2 90a<100
wgmma mma_async sp sync aligned $wgmma16 f32 tf32 tf32 ; v : v v b32 i q ; 8.2 90a<100
wgmma mma_async sp sync aligned $wgmma64 f16|f32 e4m3|e5m2 e4m3|e5m2 ; v : v v b32 i q ; 8.2 90a<100
wgmma mma_async sp sync aligned $wgmma64 ?satfinite s32 s8|u8 s8|u8 ; v : v v b32 i q ; 8.2 90a<100
tcgen05 alloc $ctas sync aligned ?shared::cta b32 ; : @ u32 ; 8.6 100a<120
tcgen05 dealloc $ctas sync aligned b32 ; : b32 u32 ; 8.6 100a<120
tcgen05 relinquish_alloc_permit $ctas sync aligned ; : ; 8.6 100a<120
tcgen05 ld sync aligned 32x32b|16x64b $tx128 ?pack::16b b32 ; v : @ ; 8.6 100a<120
tcgen05 ld sync aligned 16x128b $tx64 ?pack::16b b32 ; v : @ ; 8.6 100a<120
tcgen05 ld sync aligned 16x256b $tx32 ?pack::16b b32 ; v : @ ; 8.6 100a<120
tcgen05 ld sync aligned 16x32bx2 $tx128 ?pack::16b b32 ; v : @ i ; 8.6 100a<120
tcgen05 ld red sync aligned 32x32b $tx_red min|max ?abs ?NaN f32 ; v t : @ ; 8.8 101a<120
tcgen05 ld red sync aligned 16x32bx2 $tx_red min|max ?abs ?NaN f32 ; v t : @ i ; 8.8 101a<120
tcgen05 ld red sync aligned 32x32b $tx_red min|max u32|s32 ; v t : @ ; 8.8 101a<120
tcgen05 ld red sync aligned 16x32bx2 $tx_red min|max u32|s32 ; v t : @ i ; 8.8 101a<120
tcgen05 st sync aligned 32x32b|16x64b $tx128 ?unpack::16b b32 ; : @ v ; 8.6 100a<120
tcgen05 st sync aligned 16x128b $tx64 ?unpack::16b b32 ; : @ v ; 8.6 100a<120
tcgen05 st sync aligned 16x256b $tx32 ?unpack::16b b32 ; : @ v ; 8.6 100a<120
tcgen05 st sync aligned 16x32bx2 $tx128 ?unpack::16b b32 ; : @ i v ; 8.6 100a<120
tcgen05 wait::ld|wait::st sync aligned ; : ; 8.6 100a<120
tcgen05 cp $ctas 128x256b|4x256b|128x128b ?$unpacked ; : @ b64 ; 8.6 100a<120
tcgen05 cp $ctas 64x128b warpx2::02_13|warpx2::01_23 ?$unpacked ; : @ b64 ; 8.6 100a<120
tcgen05 cp $ctas 32x128b warpx4 ?$unpacked ; : @ b64 ; 8.6 100a<120
tcgen05 shift $ctas down ; : @ ; 8.6 100a<120
tcgen05 mma $ctas kind::f16|kind::tf32|kind::f8f6f4|kind::i8 ?$keeps ; : @ M b64 b32 *v q *i ; 8.6 100a<120
tcgen05 mma $ctas kind::mxf8f6f4 block_scale ?scale_vec::1X|block32 ?$keeps ; : @ M b64 b32 @ @ q ; 8.6 100a<120
tcgen05 mma $ctas kind::mxf4 block_scale ?scale_vec::2X|block32 ?$keeps ; : @ M b64 b32 @ @ q ; 8.6 100a<120
tcgen05 mma $ctas kind::mxf4nvf4 block_scale $scales ?$keeps ; : @ M b64 b32 @ @ q ; 8.7 100a<120
tcgen05 mma ws cta_group::1 kind::f16|kind::tf32|kind::f8f6f4|kind::i8 ?$keeps_b ; : @ M b64 b32 q *b64 ; 8.6 100a<120
tcgen05 mma $ctas kind::f16|kind::tf32|kind::f8f6f4|kind::i8 ashift ?$moved ; : @ @ b64 b32 *v q *i ; 8.6 100a<120
tcgen05 mma sp $ctas kind::f16|kind::tf32|kind::f8f6f4|kind::i8 ?$keeps ; : @ M b64 @ b32 *v q *i ; 8.6 100a<120
tcgen05 mma sp $ctas kind::f16|kind::tf32|kind::f8f6f4|kind::i8 ashift ?$moved ; : @ @ b64 @ b32 *v q *i ; 8.6 100a<120
tcgen05 mma sp $ctas kind::mxf8f6f4 block_scale ?scale_vec::1X|block32 ?$keeps ; : @ M b64 @ b32 @ @ q ; 8.6 100a<120
tcgen05 mma sp $ctas kind::mxf4 block_scale ?scale_vec::2X|block32 ?$keeps ; : @ M b64 @ b32 @ @ q ; 8.6 100a<120
tcgen05 mma sp $ctas kind::mxf4nvf4 block_scale $scales ?$keeps ; : @ M b64 @ b32 @ @ q ; 8.7 100a<120
tcgen05 mma ws sp cta_group::1 kind::f16|kind::tf32|kind::f8f6f4|kind::i8 ?$keeps_b ; \
  : @ M b64 @ b32 q *b64 ; 8.6 100a<120
tcgen05 commit $ctas mbarrier::arrive::one ?shared::cluster b64 ; : @ ; 8.6 100a<120
tcgen05 commit $ctas mbarrier::arrive::one ?shared::cluster multicast::cluster b64 ; : @ u16 ; 8.6 100a<120
tcgen05 fence::before_thread_sync|fence::after_thread_sync ; : ; 8.6 100a<120
clusterlaunchcontrol try_cancel async ?shared::cta $bulk b128 ; : @ @ ; 8.6 100
clusterlaunchcontrol try_cancel async ?shared::cta $bulk multicast::cluster::all b128 ; : @ @ ; 8.6 100a
clusterlaunchcontrol query_cancel is_canceled pred b128 ; p : b128 ; 8.6 100
clusterlaunchcontrol query_cancel get_first_ctaid v4 b32 b128 ; v : b128 ; 8.6 100
clusterlaunchcontrol query_cancel $axes b32 b128 ; b32 : b128 ; 8.6 100
multimem ld_reduce ?weak ?global min|max|add u32|s32|u64 ; t : @ ; 8.1 90
multimem ld_reduce ?weak ?global min|max s64 ; t : @ ; 8.1 90
multimem ld_reduce ?weak ?global and|or|xor b32|b64 ; t : @ ; 8.1 90
multimem ld_reduce relaxed|acquire $scope ?global min|max|add u32|s32|u64 ; t : @ ; 8.1 90
multimem ld_reduce relaxed|acquire $scope ?global min|max s64 ; t : @ ; 8.1 90
multimem ld_reduce relaxed|acquire $scope ?global and|or|xor b32|b64 ; t : @ ; 8.1 90
multimem ld_reduce ?weak ?global add f32|f64 ; t : @ ; 8.1 90
multimem ld_reduce ?weak ?global add v2|v4 f32 ; v : @ ; 8.1 90
multimem ld_reduce ?weak ?global min|max f16x2|bf16x2 ; t : @ ; 8.1 90
multimem ld_reduce ?weak ?global add ?acc::f32 f16x2|bf16x2 ; t : @ ; 8.1 90
multimem ld_reduce ?weak ?global min|max v2|v4 f16x2|bf16x2 ; v : @ ; 8.1 90
multimem ld_reduce ?weak ?global add ?acc::f32 v2|v4 f16x2|bf16x2 ; v : @ ; 8.1 90
multimem ld_reduce ?weak ?global min|max v2|v4|v8 f16|bf16 ; v : @ ; 8.1 90
multimem ld_reduce ?weak ?global add ?acc::f32 v2|v4|v8 f16|bf16 ; v : @ ; 8.1 90
multimem ld_reduce relaxed|acquire $scope ?global add f32|f64 ; t : @ ; 8.1 90
multimem ld_reduce relaxed|acquire $scope ?global add v2|v4 f32 ; v : @ ; 8.1 90
multimem ld_reduce relaxed|acquire $scope ?global min|max f16x2|bf16x2 ; t : @ ; 8.1 90
multimem ld_reduce relaxed|acquire $scope ?global add ?acc::f32 f16x2|bf16x2 ; t : @ ; 8.1 90
multimem ld_reduce relaxed|acquire $scope ?global min|max v2|v4 f16x2|bf16x2 ; v : @ ; 8.1 90
multimem ld_reduce relaxed|acquire $scope ?global add ?acc::f32 v2|v4 f16x2|bf16x2 ; v : @ ; 8.1 90
multimem ld_reduce relaxed|acquire $scope ?global min|max v2|v4|v8 f16|bf16 ; v : @ ; 8.1 90
multimem ld_reduce relaxed|acquire $scope ?global add ?acc::f32 v2|v4|v8 f16|bf16 ; v : @ ; 8.1 90
multimem ld_reduce ?weak ?global min|max ?v2|v4 e4m3x4|e5m2x4 ; v : @ ; 8.6 100a
multimem ld_reduce ?weak ?global min|max v2|v4|v8 e4m3x2|e5m2x2 ; v : @ ; 8.6 100a
multimem ld_reduce ?weak ?global min|max v4|v8 e4m3|e5m2 ; v : @ ; 8.6 100a
multimem ld_reduce ?weak ?global add ?acc::f16 ?v2|v4 e4m3x4|e5m2x4 ; v : @ ; 8.6 100a
multimem ld_reduce ?weak ?global add ?acc::f16 v2|v4|v8 e4m3x2|e5m2x2 ; v : @ ; 8.6 100a
multimem ld_reduce ?weak ?global add ?acc::f16 v4|v8 e4m3|e5m2 ; v : @ ; 8.6 100a
multimem ld_reduce relaxed|acquire $scope ?global min|max ?v2|v4 e4m3x4|e5m2x4 ; v : @ ; 8.6 100a
multimem ld_reduce relaxed|acquire $scope ?global min|max v2|v4|v8 e4m3x2|e5m2x2 ; v : @ ; 8.6 100a
multimem ld_reduce relaxed|acquire $scope ?global min|max v4|v8 e4m3|e5m2 ; v : @ ; 8.6 100a
multimem ld_reduce relaxed|acquire $scope ?global add ?acc::f16 ?v2|v4 e4m3x4|e5m2x4 ; v : @ ; 8.6 100a
multimem ld_reduce relaxed|acquire $scope ?global add ?acc::f16 v2|v4|v8 e4m3x2|e5m2x2 ; v : @ ; 8.6 100a
multimem ld_reduce relaxed|acquire $scope ?global add ?acc::f16 v4|v8 e4m3|e5m2 ; v : @ ; 8.6 100a
multimem st ?weak ?global ?v2|v4 e4m3x4|e5m2x4 ; : @ v ; 8.6 100a
multimem st ?weak ?global v2|v4|v8 e4m3x2|e5m2x2 ; : @ v ; 8.6 100a
multimem st ?weak ?global v4|v8 e4m3|e5m2 ; : @ v ; 8.6 100a
multimem st relaxed|release $scope ?global ?v2|v4 e4m3x4|e5m2x4 ; : @ v ; 8.6 100a
multimem st relaxed|release $scope ?global v2|v4|v8 e4m3x2|e5m2x2 ; : @ v ; 8.6 100a
multimem st relaxed|release $scope ?global v4|v8 e4m3|e5m2 ; : @ v ; 8.6 100a
multimem st ?weak ?global b32|b64|u32|u64|s32|s64|f32|f64|f16x2|bf16x2 ; : @ t ; 8.1 90
multimem st ?weak ?global v2|v4 f32|f16x2|bf16x2 ; : @ v ; 8.1 90
multimem st ?weak ?global v2|v4|v8 f16|bf16 ; : @ v ; 8.1 90
multimem st relaxed|release $scope ?global b32|b64|u32|u64|s32|s64|f32|f64|f16x2|bf16x2 ; : @ t ; 8.1 90
multimem st relaxed|release $scope ?global v2|v4 f32|f16x2|bf16x2 ; : @ v ; 8.1 90
multimem st relaxed|release $scope ?global v2|v4|v8 f16|bf16 ; : @ v ; 8.1 90
multimem red ?global add u32|s32|u64|f32|f64|f16x2|bf16x2 ; : @ t ; 8.1 90
multimem red relaxed|release $scope ?global add u32|s32|u64|f32|f64|f16x2|bf16x2 ; : @ t ; 8.1 90
multimem red ?global min|max u32|s32|u64|s64 ; : @ t ; 8.1 90
multimem red relaxed|release $scope ?global min|max u32|s32|u64|s64 ; : @ t ; 8.1 90
multimem red ?global and|or|xor b32|b64 ; : @ t ; 8.1 90
multimem red relaxed|release $scope ?global and|or|xor b32|b64 ; : @ t ; 8.1 90
multimem red ?global add v2|v4 f32|f16x2|bf16x2 ; : @ v ; 8.1 90
multimem red relaxed|release $scope ?global add v2|v4 f32|f16x2|bf16x2 ; : @ v ; 8.1 90
multimem red ?global add v2|v4|v8 f16|bf16 ; : @ v ; 8.1 90
multimem red relaxed|release $scope ?global add v2|v4|v8 f16|bf16 ; : @ v ; 8.1 90
cp async ca shared|shared::cta global ?$hint ?$fetch ; : @ @ i *u32 ; 7.0 80
cp async cg shared|shared::cta global ?$hint ?$fetch ; : @ @ i *u32 ; 7.0 80
cp async commit_group|wait_all ; : ; 7.0 80
cp async wait_group ; : i ; 7.0 80
cp async mbarrier arrive ?noinc ?shared|shared::cta b64 ; : @ ; 7.0 80
cp async bulk commit_group ; : ; 8.0 90
cp async bulk wait_group ?read ; : i ; 8.0 90
cp async bulk shared::cluster global $bulk ?$hint ; : @ @ u32 @ ; 8.0 90
cp async bulk shared::cluster global $bulk multicast::cluster ?$hint ; : @ @ u32 @ u16 ; 8.0 90
cp async bulk shared::cta global $bulk ?$hint ; : @ @ u32 @ ; 8.6 90
cp async bulk shared::cluster shared::cta $bulk ; : @ @ u32 @ ; 8.0 90
cp async bulk global shared::cta bulk_group ?$hint ; : @ @ u32 ; 8.0 90
cp async bulk prefetch L2 global ?$hint ; : @ u32 ; 8.0 90
cp reduce async bulk shared::cluster shared::cta $bulk and|or|xor b32 ; : @ @ u32 @ ; 8.0 90
cp reduce async bulk shared::cluster shared::cta $bulk add u32|s32|u64 ; : @ @ u32 @ ; 8.0 90
cp reduce async bulk shared::cluster shared::cta $bulk inc|dec u32 ; : @ @ u32 @ ; 8.0 90
cp reduce async bulk shared::cluster shared::cta $bulk min|max u32|s32 ; : @ @ u32 @ ; 8.0 90
cp reduce async bulk global shared::cta bulk_group ?$hint and|or|xor b32|b64 ; : @ @ u32 ; 8.0 90
cp reduce async bulk global shared::cta bulk_group ?$hint add u32|s32|u64|f32|f64 ; : @ @ u32 ; 8.0 90
cp reduce async bulk global shared::cta bulk_group ?$hint add noftz f16|bf16 ; : @ @ u32 ; 8.0 90
cp reduce async bulk global shared::cta bulk_group ?$hint inc|dec u32 ; : @ @ u32 ; 8.0 90
cp reduce async bulk global shared::cta bulk_group ?$hint min|max u32|s32|u64|s64|f16|bf16 ; : @ @ u32 ; 8.0 90
cp async bulk tensor $dims shared::cluster global ?tile $bulk ?$hint ; : @ T @ ; 8.0 90
cp async bulk tensor $dims shared::cluster global ?tile $bulk multicast::cluster ?$hint ; : @ T @ u16 ; 8.0 90
cp async bulk tensor $dims shared::cta global ?tile $bulk ?$hint ; : @ T @ ; 8.6 90
cp async bulk tensor $dims shared::cluster|shared::cta global ?tile $bulk $ctas ?$hint ; : @ T @ ; 8.6 100a<120
cp async bulk tensor $dims shared::cluster global ?tile $bulk $mc $ctas ?$hint ; : @ T @ u16 ; 8.6 100a<120
cp async bulk tensor 2d shared::cluster|shared::cta global tile::gather4 $bulk ?$ctas ?$hint ; : @ T @ ; 8.6 100
cp async bulk tensor 2d shared::cluster global tile::gather4 $bulk $mc ?$ctas ?$hint ; : @ T @ u16 ; 8.6 100a<120
cp async bulk tensor 2d global shared::cta tile::scatter4 bulk_group ?$hint ; : T @ ; 8.6 100a<120
cp async bulk prefetch tensor 2d L2 global tile::gather4 ?$hint ; : T ; 8.6 100
cp async bulk tensor $dims3 shared::cluster|shared::cta global im2col $bulk $ctas ?$hint ; : @ T @ v ; 8.6 100a<120
cp async bulk tensor $dims3 shared::cluster global im2col $bulk $mc $ctas ?$hint ; : @ T @ v u16 ; 8.6 100a<120
cp async bulk tensor $dims global shared::cta ?tile bulk_group ?$hint ; : T @ ; 8.0 90
cp async bulk prefetch tensor $dims L2 global ?tile ?$hint ; : T ; 8.0 90
cp reduce async bulk tensor $dims global shared::cta $reduced ?tile bulk_group ?$hint ; : T @ ; 8.0 90
cp async bulk tensor $dims3 shared::cluster global im2col $bulk ?$hint ; : @ T @ v ; 8.0 90
cp async bulk tensor $dims3 shared::cluster global im2col $bulk multicast::cluster ?$hint ; : @ T @ v u16 ; 8.0 90
cp async bulk tensor $dims3 shared::cta global im2col $bulk ?$hint ; : @ T @ v ; 8.6 90
cp async bulk tensor $dims3 global shared::cta im2col_no_offs bulk_group ?$hint ; : T @ ; 8.0 90
cp async bulk prefetch tensor $dims3 L2 global im2col ?$hint ; : T v ; 8.0 90
cp reduce async bulk tensor $dims3 global shared::cta $reduced im2col_no_offs bulk_group ?$hint ; : T @ ; 8.0 90
st bulk ?weak ?shared::cta ; : @ u64 i ; 8.6 100
st async ?mmio release sys ?global $memory ; : @ t ; 8.7 100
st async release gpu ?global $memory ; : @ t ; 8.7 100
st async ?weak|cluster ?shared::cluster $bulk ?v2|v4 b32|u32|s32|f32 ; : @ t @ ; 8.1 90
st async ?weak|cluster ?shared::cluster $bulk ?v2 b64|u64|s64|f64 ; : @ t @ ; 8.1 90
red async relaxed cluster ?shared::cluster $bulk inc|dec u32 ; : @ t @ ; 8.1 90
red async relaxed cluster ?shared::cluster $bulk min|max u32|s32 ; : @ t @ ; 8.1 90
red async relaxed cluster ?shared::cluster $bulk and|or|xor b32 ; : @ t @ ; 8.1 90
red async relaxed cluster ?shared::cluster $bulk add u32|s32|u64 ; : @ t @ ; 8.1 90
tensormap replace tile global_address ?global|shared::cta b1024 b64 ; : @ b64 ; 8.3 90a
tensormap replace tile rank ?global|shared::cta b1024 b32 ; : @ b32 ; 8.3 90a
tensormap replace tile box_dim|global_dim|element_stride ?global|shared::cta b1024 b32 ; : @ i b32 ; 8.3 90a
tensormap replace tile global_stride ?global|shared::cta b1024 b64 ; : @ i b64 ; 8.3 90a
tensormap replace tile elemtype|interleave_layout|swizzle_mode|fill_mode ?global|shared::cta b1024 b32 ; : @ i ; 8.3 90a
tensormap cp_fenceproxy global shared::cta tensormap::generic release $scope sync aligned ; : @ @ i ; 8.3 90
"""

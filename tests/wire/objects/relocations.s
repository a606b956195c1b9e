# Each kind of relocation and of symbol that a linker resolves.
.text
.globl code
.type code,@function
code:
  s_branch after
  s_endpgm
.section .text.more,"ax",@progbits
.globl after
.type after,@function
after:
  s_nop 0
  s_endpgm
.data
.weak nobody
.globl absolute, small, table
absolute = 0x123456789
small = 17
.comm shared, 64, 32
.comm second, 8, 256
.type table,@object
table:
  .quad nobody
  .quad nobody@rel64
  .quad absolute + 4
  .quad shared + 8
  .quad second
  .quad after@rel64
  .quad small@rel64
  .long nobody@rel32@lo
  .long absolute@abs32@lo
  .long absolute@abs32@hi
  .long small
  .long after@rel32@lo
  .long after@rel32@hi
  .long after@gotpcrel32@lo
  .long after@gotpcrel32@hi
  .long absolute@gotpcrel32@lo

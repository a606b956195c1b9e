#!/bin/sh
# Makes the objects of this folder again. Debian's clang 19.1.7 made those that are here.
set -eu
cd "$(dirname "$0")"
target="--target=amdgcn-amd-amdhsa -mcpu=gfx1100 -nogpulib -ffile-prefix-map=$PWD=/tinyhw-sources/tests/launch/objects"
CLANG=${CLANG:-clang-19}
$CLANG $target -O2 -x c typed.c -o typed_O2.co
$CLANG $target -O0 -x c -c typed.c -o typed_O0.o
$CLANG $target -O2 -g -gz -x c typed.c -o typed_O2_g.co
$CLANG $target -O0 -g -x c -c typed.c -o typed_O0_g.o
$CLANG $target -O2 -x cl -cl-std=CL2.0 -cl-kernel-arg-info -Xclang -finclude-default-header typed.cl -o typed_cl.co

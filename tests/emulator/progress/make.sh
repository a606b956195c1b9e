#!/bin/sh
# Compiles kernels.c for each generation: clang 19 and lld 19 of Debian's packages. sh make.sh
cd "$(dirname "$0")" || exit 1
for cpu in gfx1100 gfx1201 gfx942; do
  clang-19 -O2 -x c -target amdgcn-amd-amdhsa -mcpu=$cpu -nogpulib -fuse-ld=lld -Wl,--build-id=none -Wl,-s \
    kernels.c -o $cpu.co && xz -9ef $cpu.co
done

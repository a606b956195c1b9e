#!/bin/sh
# Makes the PTX of kernels.cu; the files say the compiler's version (CUDA 13.0).
cd "$(dirname "$0")" && for sm in 80 90; do nvcc -ptx -O3 -arch=sm_$sm kernels.cu -o kernels_sm$sm.ptx || exit 1; done

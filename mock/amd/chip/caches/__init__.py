"""Weak memory: the caches of a GPU of GFX11, which keep stale lines and unwritten data until a packet asks them not to.

Everything here is a behaviour that the chip may show; where the sources leave a question open, it is the one that a
careful driver has to expect. Sources, with what is taken from each:

* LLVM's AMDGPUUsage, "Memory Model GFX10-GFX11": a vector L0 for each CU and a scalar one for each WGP, not coherent
  with each other; an L1 (GL1) for each shader array behind both; one L2 (GL2) for the GPU; the MALL, which is coherent
  with memory and so is no part of this. Kernel arguments are MTYPE UC so that GL2 need not be invalidated for them,
  and the L0s and GL1 are invalidated when a dispatch begins (by its acquire fence): so these keep UC lines as well.
* RDNA3 ISA manual, 4.1.1: loads with GLC 0 hit the L0 and GL1, with GLC 1 miss both and drop the line that matched;
  stores and atomics are of device scope: they go on to GL2 at once. 11.1: BUFFER_GL0_INV, BUFFER_GL1_INV.
* Linux 6.12 `gmc_v11_0.c` (gmc_v11_0_get_vm_pte): a page is MTYPE UC when its buffer is COHERENT, EXT_COHERENT or
  UNCACHED, and MTYPE NC else, in video and in system memory; `amdgpu_amdkfd_gpuvm.c` gives buffers these flags from
  KFD_IOC_ALLOC_MEM_FLAGS_*. GL2 keeps NC lines, also dirty ones, and none of UC.
* The same, `nvd.h` and PAL's packet headers: what the bits of GCR_CNTL name. ACQUIRE_MEM and SDMA's GCR_REQ act at
  once, RELEASE_MEM's when the waves before it have ended.
* The same, `sdma_v6_0.c` (sdma_v6_0_gfx_resume): copy engines read with the policy NOA and write with BYPASS; ROCr
  writes GL2 back and invalidates it before each copy, and writes it back behind it. So a copy may find either what
  GL2 holds or what memory holds (`SdmaSpace`), and leaves GL2's lines as they are. Fences carry an MTYPE of their own.
* The host and other GPUs reach a GPU's memory over PCIe, past its caches.

Weak memory is another address space, not another emulator. `MOCKGPU_MEMORY=weak` gives each queue,
and the waves of each dispatch, a view of memory through the caches of their GPU
(`emulator/view.py`); `mock/amd/chip/flights.py` lets dispatches run beside the packets behind them.
Strong memory has neither, and asks one attribute more a memory instruction. What a chip may do and
a driver must expect is what it does; each read is held against the newest value, so a finding is a
fact.
"""

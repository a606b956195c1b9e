// A product of matrices by CUTLASS: D[m, n] = A[m, k] B[k, n], rows of A and columns of B close together, written to a
// file. Compiled for sm_80 with -DELEMENT=... -DRESULT=... -DDEPTH=... -DINSTRUCTION=..., for sm_90a without the last but
// with -DSCHEDULE=... -DEPILOGUE=... and clusters of -DCLUSTER=... by -DACROSS=... blocks.
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "cutlass/cutlass.h"
#include "cutlass/numeric_types.h"

using Element = ELEMENT;
using Result = RESULT;

#ifdef SCHEDULE
#include "cute/tensor.hpp"
#include "cutlass/epilogue/collective/collective_builder.hpp"
#include "cutlass/gemm/collective/collective_builder.hpp"
#include "cutlass/gemm/device/gemm_universal_adapter.h"
#include "cutlass/gemm/kernel/gemm_universal.hpp"
#include "cutlass/gemm/kernel/tile_scheduler.hpp"
#include "cutlass/util/packed_stride.hpp"

using Tile = cute::Shape<cute::_128, cute::_64, cute::Int<DEPTH>>;
using Cluster = cute::Shape<cute::Int<CLUSTER>, cute::Int<ACROSS>, cute::_1>;
using Rows = cutlass::layout::RowMajor;
using Columns = cutlass::layout::ColumnMajor;
constexpr int kWide = 16 / sizeof(Element), kOut = 16 / sizeof(Result);
using Epilogue = typename cutlass::epilogue::collective::CollectiveBuilder<
    cutlass::arch::Sm90, cutlass::arch::OpClassTensorOp, Tile, Cluster,
    cutlass::epilogue::collective::EpilogueTileAuto, Result, Result, Result, Rows, kOut, Result, Rows, kOut,
    cutlass::epilogue::EPILOGUE>::CollectiveOp;
using Mainloop = typename cutlass::gemm::collective::CollectiveBuilder<
    cutlass::arch::Sm90, cutlass::arch::OpClassTensorOp, Element, Rows, kWide, Element, Columns, kWide, Result, Tile,
    Cluster,
    cutlass::gemm::collective::StageCountAutoCarveout<static_cast<int>(sizeof(typename Epilogue::SharedStorage))>,
    cutlass::gemm::SCHEDULE>::CollectiveOp;
using Kernel = cutlass::gemm::kernel::GemmUniversal<cute::Shape<int, int, int, int>, Mainloop, Epilogue
#ifdef SCHEDULER
    , cutlass::gemm::SCHEDULER
#endif
    >;
using Gemm = cutlass::gemm::device::GemmUniversalAdapter<Kernel>;

cutlass::Status product(int m, int n, int k, Element *a, Element *b, Result *d) {
  auto packed = [](auto stride, int rows, int columns) {
    return cutlass::make_cute_packed_stride(stride, cute::make_shape(rows, columns, 1));
  };
  cutlass::KernelHardwareInfo hardware;
  hardware.sm_count = 4;  // a persistent kernel of few blocks
  typename Gemm::Arguments arguments{
      cutlass::gemm::GemmUniversalMode::kGemm, {m, n, k, 1},
      {a, packed(typename Kernel::StrideA{}, m, k), b, packed(typename Kernel::StrideB{}, n, k)},
      {{Result(1), Result(0)}, d, packed(typename Kernel::StrideC{}, m, n), d, packed(typename Kernel::StrideD{}, m, n)},
      hardware};
  Gemm gemm;
  void *space = nullptr;
  if (cudaMalloc(&space, Gemm::get_workspace_size(arguments) + 16)) return cutlass::Status::kErrorInternal;
  cutlass::Status status = gemm.can_implement(arguments);
  if (status == cutlass::Status::kSuccess) status = gemm.initialize(arguments, space);
  return status == cutlass::Status::kSuccess ? gemm.run() : status;
}
#else
#include "cutlass/gemm/device/gemm.h"

using Gemm = cutlass::gemm::device::Gemm<
    Element, cutlass::layout::RowMajor, Element, cutlass::layout::ColumnMajor, Result, cutlass::layout::RowMajor, Result,
    cutlass::arch::OpClassTensorOp, cutlass::arch::Sm80, cutlass::gemm::GemmShape<64, 64, DEPTH>,
    cutlass::gemm::GemmShape<32, 32, DEPTH>, cutlass::gemm::GemmShape<16, 8, INSTRUCTION>,
    cutlass::epilogue::thread::LinearCombination<Result, 4, Result, Result>,
    cutlass::gemm::threadblock::GemmIdentityThreadblockSwizzle<>, 3>;

cutlass::Status product(int m, int n, int k, Element *a, Element *b, Result *d) {
  Gemm gemm;
  return gemm({{m, n, k}, {a, k}, {b, k}, {d, n}, {d, n}, {Result(1), Result(0)}});
}
#endif

int main(int count, char **words) {
  if (count != 5) return 2;
  int m = std::atoi(words[1]), n = std::atoi(words[2]), k = std::atoi(words[3]);
  std::vector<Element> a(size_t(m) * k), b(size_t(n) * k);
  for (size_t i = 0; i < a.size(); ++i) a[i] = Element(int(i * 7 % 11) - 5);
  for (size_t i = 0; i < b.size(); ++i) b[i] = Element(int(i * 5 % 13) - 6);
  std::vector<Result> d(size_t(m) * n);
  void *at[3];
  size_t bytes[3] = {a.size() * sizeof(Element), b.size() * sizeof(Element), d.size() * sizeof(Result)};
  const void *from[3] = {a.data(), b.data(), d.data()};
  for (int i = 0; i < 3; ++i)
    if (cudaMalloc(&at[i], bytes[i]) || cudaMemcpy(at[i], from[i], bytes[i], cudaMemcpyHostToDevice)) return 3;
  cutlass::Status status = product(m, n, k, (Element *)at[0], (Element *)at[1], (Result *)at[2]);
  if (status != cutlass::Status::kSuccess) {
    std::fprintf(stderr, "%s\n", cutlassGetStatusString(status));
    return 4;
  }
  if (cudaDeviceSynchronize() || cudaMemcpy(d.data(), at[2], bytes[2], cudaMemcpyDeviceToHost)) return 5;
  FILE *out = std::fopen(words[4], "wb");
  bool good = out && std::fwrite(d.data(), 1, bytes[2], out) == bytes[2];
  return good && !std::fclose(out) ? 0 : 6;
}

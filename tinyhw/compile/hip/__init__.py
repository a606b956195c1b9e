"""HIP C++ that people write, by clang alone: its command line, and the header that stands for ROCm's."""

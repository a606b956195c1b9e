"""Streams: work in order, launches of kernels, who waits for whom."""

"""Memory: allocations, pools, managed and virtual memory, arrays, and what other processes may have of it."""

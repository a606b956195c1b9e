"""NVIDIA: calls of RM and UVM, GPFIFO entries, pushbuffers and QMDs."""

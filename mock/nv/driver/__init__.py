"""The kernel driver as its clients see it: RM and UVM."""

"""The chip: the command processor with its queues, copy engines, caches and dispatches."""

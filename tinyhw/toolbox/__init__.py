"""The queue toolbox over open devices: what `tinyhw.queues` does with ports and machines that are handed to it."""

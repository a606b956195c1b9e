"""The chip: channels, the host engine, compute and copy engines, and what a launch is."""

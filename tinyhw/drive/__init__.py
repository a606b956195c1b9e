"""Drivers of devices: direct ones through a Port, and those of this host. No branch for the mock."""

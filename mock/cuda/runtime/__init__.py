"""libcudart: the runtime's functions upon the driver's."""

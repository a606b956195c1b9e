"""libnvidia-ml.so.1, NVIDIA's management library, which tells of the cards behind libcuda; it changes nothing there."""

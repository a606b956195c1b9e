"""The rungs of NVIDIA's GPUs, behind /dev/nvidiactl and /dev/nvidia-uvm."""

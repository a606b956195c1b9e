"""NVIDIA GPUs through /dev/nvidiactl and /dev/nvidia-uvm (`device`); PTX on the emulator alone (`bare`)."""

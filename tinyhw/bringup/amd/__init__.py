"""The rungs of AMD's GPUs, behind /dev/kfd; lower ones by calls alone, upper ones by queues and waves."""

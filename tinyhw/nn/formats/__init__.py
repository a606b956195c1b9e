"""Files of tensors that other tools write: safetensors, PyTorch's checkpoints, GGUF, IDX. Reading one runs none of it.

Every reader takes a path, or the bytes themselves, and a device; it raises DecodeError that names the file, the place
and the cause where the file is damaged or hostile, and Unsupported for what is well formed and not known here.
"""

"""Launches of ready code: code objects, cubins, PTX and CUDA C++, with arrays in and arrays out.

`launch` is `tinyhw.launch`, `debug` the same launch in the debugger, `report` what a run was like. `parameters` says
what a kernel takes: from its metadata, its debug information, or (`evidence_amdgcn`, `inference`) from its code."""

"""Devices by name: what opens them, their memory, and who watches them.

`registry` is the composition root: it hands each driver its port, the system's or a mock's (`mocked`), and is with
`captured` the only place that knows of MOCKGPU. `buffer` is memory on a device; `observed` and `profile` look on."""

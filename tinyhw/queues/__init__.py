"""Command queues as things to look at: captures of what a program submitted, and what can be done with them.

    container   the file: frames with checksums, each content once
    events      what a capture says, one declaration an event
    world       what the kernel driver's calls have made: memory, queues; `amd` and `nv` know their own calls
    cuda        CUDA's calls and streams, where a mock's libcuda takes the place of a driver
    record      a port that writes down what goes through it
    capture     a file read back: events in order, memory as it was
    listing     packets as text, with names for addresses
    happens     what happens before what, and accesses that nothing orders
    foreign     dumps of other programs, read
    state       what a launch finds set, and its code; `summary` counts
    plans       submissions that come again, known by their words
    heads       counts of packets, by their headers
    source      a capture as text; `build` as programs of packets
    replay      a capture again, on another machine; `moved` where memory lies elsewhere
    diff        two captures beside each other
    arguments   what a kernel reads and writes by its arguments, from its code
    checks      launches against their code objects
    lint        rules, and what breaks them
    timeline    a capture over time; `page` and `trace` show it
    board       what queues do, of a capture that grows
    draft       a capture that can be cut; `fields` of packets that can be put to rest
    shown       what a stream shows when it runs, and whether a smaller one shows the same
    shrink      the smallest stream that does (`ddmin`); `reproduce` has it as a Python program
    debug       a debugger that stands before a packet (`breaks`), on a mock that goes on one by one
                (`mock/running.py`, `draw` and `single`); `toolbox/debug.py` composes them

`happens` is what `lint`, `doctor` and `timeline` go by. `mock/cuda/watching.py` says what the mock of CUDA tells.
Drivers, mocks and devices are not imported here: who composes hands in ports and names (`devices/captured.py`).
"""
